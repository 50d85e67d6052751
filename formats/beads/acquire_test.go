package beads_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/beads"
)

func lockFor(t testing.TB, holder string) *beads.ExclusiveLock {
	t.Helper()
	lock, err := beads.NewExclusiveLock(holder, "1.0.0")
	require.NoError(t, err)
	return lock
}

func TestBeadsAcquireAndRelease(t *testing.T) {
	dir, mine := t.TempDir(), lockFor(t, "me")
	require.ErrorIs(t, beads.Release(t.Context(), dir, mine), beads.ErrChanged)
	require.NoError(t, beads.Acquire(t.Context(), dir, mine))
	found, err := beads.Read(dir)
	require.NoError(t, err)
	require.True(t, mine.Same(found))
	require.False(t, found.Stale())

	skip, holder, err := beads.ShouldSkipDatabase(dir)
	require.NoError(t, err)
	require.True(t, skip)
	require.Equal(t, "me", holder)

	other := lockFor(t, "me")
	var held *beads.HeldError
	require.ErrorAs(t, beads.Acquire(t.Context(), dir, other), &held)
	require.True(t, mine.Same(held.Lock))
	require.ErrorIs(t, beads.Release(t.Context(), dir, other), beads.ErrChanged)
	require.NoError(t, beads.Release(t.Context(), dir, mine))
	_, err = beads.Read(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestBeadsAcquireReplacesOnlyAStaleLock(t *testing.T) {
	dead, host := deadPID(t), hostname(t)
	for name, c := range map[string]struct {
		content string
		as      any
	}{
		"remote":      {lockOf(dead, "another-host"), new(*beads.HeldError)},
		"alive":       {lockOf(os.Getppid(), host), new(*beads.HeldError)},
		"half":        {lockOf(dead, host)[:40], new(*beads.MalformedError)},
		"empty":       {"", new(*beads.MalformedError)},
		"not a field": {`{"holder":1}`, new(*beads.MalformedError)},
	} {
		dir := lockDir(t, c.content)
		require.ErrorAs(t, beads.Acquire(t.Context(), dir, lockFor(t, "me")), c.as, name)
		content, err := os.ReadFile(filepath.Join(dir, beads.FileName))
		require.NoError(t, err)
		require.Equal(t, c.content, string(content), name)
	}
	require.NoError(t, beads.Acquire(t.Context(), lockDir(t, lockOf(dead, host)), lockFor(t, "me")))
	requireFieldError(t, beads.Acquire(t.Context(), t.TempDir(), lockFor(t, "")), "holder")
	require.ErrorIs(t, beads.Acquire(t.Context(), filepath.Join(t.TempDir(), "none"), lockFor(t, "me")), fs.ErrNotExist)
}

// TestBeadsOneOfMany: exactly one of those who find a database free or its lock stale gets it, while daemons
// look at it and remove what is stale.
func TestBeadsOneOfMany(t *testing.T) {
	stale := lockOf(deadPID(t), hostname(t))
	for round := range 30 {
		dir := lockDir(t, stale)
		if round%3 == 0 {
			require.NoError(t, os.Remove(filepath.Join(dir, beads.FileName)))
		}
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				var held *beads.HeldError
				switch err := beads.Acquire(context.Background(), dir, lockFor(t, strconv.Itoa(i))); {
				case err == nil:
					won.Add(1)
				case !errors.As(err, &held):
					t.Error(err)
				}
			})
			all.Go(func() {
				if _, _, err := beads.ShouldSkipDatabase(dir); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
		require.True(t, exists(dir))
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1)
	}
}
