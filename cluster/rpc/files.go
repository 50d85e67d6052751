package rpc

import "golang.org/x/sys/unix"

// filesReserve is how many files a process keeps for what is no connection: its log, its snapshots, its mount.
const filesReserve = 256

// withinFiles leaves no more connections than the process may have files. (Go raises the soft limit to the hard one when a process
// starts.) One that may have very few gets by with what it has.
func withinFiles(l limits) limits {
	l.connections = max(min(l.connections, filesFor(3, 4)), 1)
	return l
}

// filesFor answers a share of the files that connections may be.
func filesFor(share, of int) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	reserve := min(filesReserve, int(limit.Cur)/2)
	return (int(limit.Cur) - reserve) / of * share
}
