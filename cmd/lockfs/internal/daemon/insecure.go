package daemon

const insecureUsage = "plain TCP: whoever reaches a server's port may do anything, in anybody's name"
