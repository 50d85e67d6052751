package rpc

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestConnectionsLeaveFilesForTheRest gives the process few, and then very few.
func TestConnectionsLeaveFilesForTheRest(t *testing.T) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	for files, connections := range map[uint64]int{1256: 750, 256: 96} {
		few := limit
		few.Cur = files
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
		require.Equal(t, connections, withinFiles(standardLimits, filesOfCalls).connections)
		all := withinFiles(standardLimits, filesOfCalls).connections + withinFiles(joinLimits, filesOfJoiners).connections +
			withinFiles(socketLimits, filesOfSockets).connections + standardHalfOpen().max
		require.LessOrEqual(t, all, int(files)-min(filesReserve, int(files)/2), "all that strangers, hosts and users may have together")
	}
}
