package thread

import "golang.org/x/sys/unix"

// older are system calls missing on newer architectures.
var older = []int{unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_READLINK}

// foreignFcntl are fcntl and fcntl64 in the table of 32-bit programs.
var foreignFcntl = []int{55, 221}
