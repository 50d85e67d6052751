package daemon

import "errors"

const insecureUsage = "plain TCP: whoever reaches a server's port may do anything, in anybody's name"

var errInsecureOnly = errors.New("servers and mounts have no certificates yet: say --insecure if whoever reaches the port may do anything")
