package thread

import "golang.org/x/sys/unix"

// older are system calls that newer processors never had.
var older = []int{unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_READLINK}

// foreignFcntl are fcntl and fcntl64 in the table of programs of 32 bits.
var foreignFcntl = []int{55, 221}
