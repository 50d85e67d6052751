package rpc

import "golang.org/x/sys/unix"

// filesReserve is the number of files kept for the log, snapshots and mount.
const filesReserve = 256

// Shares of the remaining files, in sixteenths, for each kind of connection. (Go raises the soft limit to the hard limit at the start.)
const (
	filesOfCalls    = 12
	filesOfHalfOpen = 2
	filesOfJoiners  = 1
	filesOfSockets  = 1
)

// withinFiles limits connections to a share of the files, but not below one.
func withinFiles(l limits, share int) limits {
	l.connections = max(min(l.connections, filesFor(share)), 1)
	return l
}

// filesFor returns the number of files in so many sixteenths.
func filesFor(share int) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	reserve := min(filesReserve, int(limit.Cur)/2)
	return (int(limit.Cur) - reserve) * share / 16
}
