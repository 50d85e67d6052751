package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"lockfs/cluster/identity"
	"lockfs/formats"
)

// advice is what to do about an error that cannot say it itself; empty if there is nothing to add.
func advice(err error) string {
	var exit *ExitStatus
	switch {
	case IsLost(err) && errors.As(err, &exit) && exit.Code == ExitLost:
		return "somebody else may be at what it protects: look at that before you go on; " +
			"on a mount of lockfs `lockfs events` tells who it was"
	case errors.Is(err, formats.ErrNotRegular):
		return "a lock of this format is a file: give another name, or remove what is there if it is nobody's"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP):
		return "give another path"
	case errors.Is(err, syscall.EROFS):
		return "give a path on a file system that can be written to"
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return fmt.Sprintf("user %d may not do that: change it with chmod or chown, or be another user", os.Geteuid())
	case errors.Is(err, syscall.ENOTCONN):
		return "lockfs, which was mounted there, has ended: `lockfs up` starts it again, and `lockfs doctor` tells what is wrong"
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process listens there, which `ss -ltnp` shows: stop it, or give another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this host has no such address, `ip address` shows which it has: give one of these; where others reach it at another, that is --advertise"
	case errors.Is(err, identity.ErrNotToken):
		return "`lockfs token create` makes one on a server"
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(err.Error(), ";`"): // nothing is said of it yet
		return "give another path, or make what is missing"
	case errors.Is(err, syscall.ETIMEDOUT):
		return "no majority of the servers answers that mount: see `lockfs status`"
	}
	return ""
}
