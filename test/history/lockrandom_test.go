package history

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// TestKernelLocksArePossible lets clients lock files of a file system that is known to be right: the model must
// not be stricter than that. The kernel does without proof that processes wait for each other in a circle; who is
// told so has no lock, as one who is interrupted.
func TestKernelLocksArePossible(t *testing.T) {
	const clients, calls = 6, 60
	self, err := os.Executable()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("/dev/shm", "lockfs-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	files := []string{"x", "y"}
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	var records []string
	failures := make([]error, clients)
	var playing sync.WaitGroup
	for i := range clients {
		records = append(records, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		plan := &Plan{
			Host: "host", Record: records[i], Dirs: []string{dir}, Client: i, Seed: 1, Calls: calls, Pause: 5, Files: files,
			FSType: unix.TMPFS_MAGIC,
		}
		playing.Go(func() {
			if err := exec.Command(self, plan.Args()...).Run(); !Killed(err) {
				failures[i] = err
			}
		})
	}
	playing.Wait()
	for _, failure := range failures {
		require.NoError(t, failure)
	}
	history := &LockHistory{OpTimeout: time.Minute, LockDelay: time.Hour}
	history.Calls, err = ReadLockCalls(records...)
	require.NoError(t, err)
	history.Calls = slices.DeleteFunc(history.Calls, func(c *LockCall) bool { return c.Errno == syscall.EDEADLK })
	require.NoError(t, history.Check(time.Minute))
	require.NotZero(t, history.Tally()["close did not return"], "processes that were killed")
	t.Log(history.Tally())
}
