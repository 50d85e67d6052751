package rpc

import "golang.org/x/sys/unix"

// filesReserve is how many files a process keeps for what is no connection: its log, its snapshots, its mount.
const filesReserve = 256

// Shares of the files, in sixteenths, for connections of each kind: together they leave the reserve alone. (Go raises the soft limit to the
// hard one when a process starts.)
const (
	filesOfCalls    = 12
	filesOfHalfOpen = 2
	filesOfJoiners  = 1
	filesOfSockets  = 1
)

// withinFiles leaves no more connections than their share of the files. A process that may have very few gets by with what it has.
func withinFiles(l limits, share int) limits {
	l.connections = max(min(l.connections, filesFor(share)), 1)
	return l
}

// filesFor answers so many sixteenths of the files that connections may be.
func filesFor(share int) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	reserve := min(filesReserve, int(limit.Cur)/2)
	return (int(limit.Cur) - reserve) * share / 16
}
