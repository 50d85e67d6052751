package fusefs

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

// TestAWaitHoldsNoLargeBuffer has many threads wait for a lock at once: together they need less than one large buffer each.
func TestAWaitHoldsNoLargeBuffer(t *testing.T) {
	const waiters, mostEach = 200, 64 << 10
	dir, s := mountFor(t, newCluster())
	path := writeFile(t, dir, "lock", "")
	held := openFile(t, path, os.O_RDWR)
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	var waiting atomic.Int32
	released := make(chan struct{})
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetAwaitLock() != nil {
			waiting.Add(1)
			<-released
		}
		return nil, false, nil
	})
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapInuse
	}
	before := heap()
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			fd, err := unix.Open(filepath.Join(dir, "lock"), unix.O_RDWR|unix.O_CLOEXEC, 0)
			assert.NoError(t, err)
			assert.NoError(t, unix.Flock(fd, unix.LOCK_EX))
			assert.NoError(t, unix.Close(fd))
		})
	}
	eventually(t, "all wait", func() bool { return waiting.Load() == waiters })
	during := heap()
	close(released)
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_UN))
	all.Wait()
	require.Less(t, during-min(before, during), uint64(waiters*mostEach))
}
