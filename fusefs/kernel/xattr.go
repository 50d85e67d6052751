package kernel

import (
	"strings"
	"syscall"
)

// userPrefix is of the only namespace of extended attributes that there is. Access control lists, security
// labels and the rest are EOPNOTSUPP, at once: the kernel asks for some on its own.
const userPrefix = "user."

// CheckXattr refuses the name of an extended attribute that no file can have.
func CheckXattr(name string) syscall.Errno {
	bare, isUser := strings.CutPrefix(name, userPrefix)
	switch {
	case !isUser:
		return syscall.EOPNOTSUPP
	case bare == "":
		return syscall.EINVAL
	}
	return 0
}
