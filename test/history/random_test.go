package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestKernelIsPossible lets clients play on a file system that is known to be right: the model must not
// be stricter than that. Where lockfs promises more (only the host that removed a file can go on using
// it), all clients are on one host.
func TestKernelIsPossible(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "lockfs-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const clients, calls = 8, 60
	total := 0
	for seed := range uint64(5) {
		path := filepath.Join(dir, fmt.Sprint(seed))
		require.NoError(t, os.Mkdir(path, 0o755))
		recorder, err := NewRecorder(path + ".calls")
		require.NoError(t, err)
		var playing sync.WaitGroup
		failures := make([]error, clients)
		for i := range clients {
			playing.Go(func() {
				c := NewClient(recorder, i, "host", path)
				c.fsType = unix.TMPFS_MAGIC
				failures[i] = c.Play(rand.New(rand.NewPCG(seed, uint64(i))), calls, 30*time.Millisecond)
			})
		}
		playing.Wait()
		for _, failure := range failures {
			require.NoError(t, failure)
		}
		history := &History{Forgetful: true}
		history.Calls, err = ReadCalls(path + ".calls")
		require.NoError(t, err)
		history.Calls = slices.DeleteFunc(history.Calls, func(c *Call) bool { return c.Kind == List })
		require.NoError(t, history.Check(time.Minute))
		require.Empty(t, history.Interrupted())
		total += len(history.Calls)
	}
	t.Logf("%d calls", total)
}
