package swarm_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/swarm"
)

func put(t testing.TB, d swarm.Dir, task, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(string(d), swarm.FileName(task)), []byte(content), swarm.FileMode))
}

func TestSwarmDefaultDir(t *testing.T) {
	t.Setenv(swarm.StateDirVariable, "")
	require.Equal(t, swarm.Dir("/tmp/ai_swarm/locks"), swarm.DefaultDir())
	t.Setenv(swarm.StateDirVariable, "/x")
	require.Equal(t, swarm.Dir("/x/locks"), swarm.DefaultDir())
}

func TestSwarmDirAcquireAndRelease(t *testing.T) {
	d := swarm.Dir(filepath.Join(t.TempDir(), "not", "there"))
	require.ErrorIs(t, d.Release(t.Context(), "t", "w"), fs.ErrNotExist)
	taken, err := d.Acquire(t.Context(), "t", "w", 0)
	require.NoError(t, err)
	found, err := d.Check("t")
	require.NoError(t, err)
	require.Equal(t, taken, found.Lock)
	require.Equal(t, swarm.Active, found.Status)

	_, err = d.Acquire(t.Context(), "t", "w", 0)
	var held *swarm.HeldError
	require.ErrorAs(t, err, &held, "not by the same worker either")
	require.Equal(t, taken, held.Entry.Lock)
	var owner *swarm.OwnerError
	require.ErrorAs(t, d.Release(t.Context(), "t", "v"), &owner)
	require.NoError(t, d.Release(t.Context(), "t", "w"))
	_, err = d.Check("t")
	require.ErrorIs(t, err, fs.ErrNotExist)
	entries, err := d.List()
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestSwarmDirThatCannotBeMade(t *testing.T) {
	d := filepath.Join(t.TempDir(), "locks")
	require.NoError(t, os.Symlink("not-there", d))
	_, err := swarm.Dir(d).Acquire(t.Context(), "t", "w", 0)
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestSwarmDirExpiredIsItsWorkersUntilReplaced(t *testing.T) {
	d := swarm.Dir(t.TempDir())
	put(t, d, "task-001", example)
	require.NoError(t, d.Release(t.Context(), "task-001", "worker-0"))
	put(t, d, "task-001", example)
	taken, err := d.Acquire(t.Context(), "task-001", "worker-1", time.Hour)
	require.NoError(t, err)
	require.Equal(t, "worker-1", taken.Worker)
	var owner *swarm.OwnerError
	require.ErrorAs(t, d.Release(t.Context(), "task-001", "worker-0"), &owner)
}

func TestSwarmDirRefusesPathTricks(t *testing.T) {
	d := swarm.Dir(t.TempDir())
	for _, id := range []string{"../x", ".x", "a/b", "", "a\n"} {
		_, err := d.Acquire(t.Context(), id, "w", 0)
		requireFieldError(t, err, "task_id")
		requireFieldError(t, d.Release(t.Context(), id, "w"), "task_id")
		_, err = d.Check(id)
		requireFieldError(t, err, "task_id")
	}
}

// TestSwarmDirOneOfMany: exactly one of those who find a task free or expired gets it, also under one name.
func TestSwarmDirOneOfMany(t *testing.T) {
	d := swarm.Dir(t.TempDir())
	for round := range 30 {
		require.NoError(t, os.RemoveAll(filepath.Join(string(d), "task-001.lock")))
		if round%3 != 0 {
			put(t, d, "task-001", example)
		}
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				_, err := d.Acquire(t.Context(), "task-001", "worker-"+strconv.Itoa(i%2), time.Hour)
				var held *swarm.HeldError
				if err == nil {
					won.Add(1)
				} else if !errors.As(err, &held) || held.Entry.Lock == nil {
					t.Errorf("%v", err) // never half written
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
		files, err := os.ReadDir(string(d))
		require.NoError(t, err)
		require.Len(t, files, 1)
	}
}

// TestSwarmDirExcludes has workers take and release a lock all the time: whoever has it can release it.
func TestSwarmDirExcludes(t *testing.T) {
	d := swarm.Dir(t.TempDir())
	var inside, turns atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			worker := "worker-" + strconv.Itoa(i)
			for range 40 {
				if _, err := d.Acquire(t.Context(), "t", worker, 0); err != nil {
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two of them")
				}
				turns.Add(1)
				inside.Add(-1)
				if err := d.Release(t.Context(), "t", worker); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, turns.Load())
}
