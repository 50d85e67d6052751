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

// advice returns the next step for an error without one, or "".
func advice(err error) string {
	var exit *ExitStatus
	switch {
	case IsLost(err) && errors.As(err, &exit) && exit.Code == ExitLost:
		return "another process may now use the resource that the lock protects: check this before you go on; " +
			"on a lockfs mount, `lockfs events` shows which process took the lock"
	case errors.Is(err, formats.ErrNotRegular):
		return "this format keeps each lock in a file: give another name, or remove the one in the way if nothing needs it"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP):
		return "give another path"
	case errors.Is(err, syscall.EROFS):
		return "give a path on a writable file system"
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return fmt.Sprintf("user %d needs access: change it with chmod or chown, or run as another user", os.Geteuid())
	case errors.Is(err, syscall.ENOTCONN):
		return "the lockfs daemon of this mount has ended: start it with `lockfs up`; `lockfs doctor` shows the cause"
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process listens there (`ss -ltnp` shows it): stop it, or give another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this host does not have this address: give one that `ip address` lists; if other hosts use another one (NAT), set it with --advertise"
	case errors.Is(err, identity.ErrNotToken):
		return "create one with `lockfs token create` on a server"
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(err.Error(), ";`"): // the error has no next step yet
		return "give another path, or create it"
	case errors.Is(err, syscall.ETIMEDOUT):
		return "the mount cannot reach a quorum of servers: see `lockfs status`"
	}
	return ""
}
