package kernel

import (
	"strings"
	"syscall"
)

// userPrefix is the only supported namespace of extended attributes. Others, such as access control lists and
// security labels, get EOPNOTSUPP at once: the kernel asks for some itself.
const userPrefix = "user."

// CheckXattr returns an error for the name of an extended attribute which no file can have.
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
