package thread

import "golang.org/x/sys/unix"

var walking = append([]int{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_TRUNCATE, unix.SYS_READLINKAT,
}, older...)
