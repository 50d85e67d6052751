package protocol

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/tower"
)

func newTowerRun(t *testing.T, ttl int64, now func() time.Time) *towerRun {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, tower.DirMode))
	r := &towerRun{
		towerRequest: towerRequest{intent: "i", intentVersion: "1", ttl: ttl, wait: time.Minute, mode: string(tower.Mutate)},
		answer:       &answer{}, locks: tower.Dir{Path: dir, Now: now}, name: "x", stderr: io.Discard,
	}
	require.NoError(t, r.prepare())
	return r
}

// TestATowerLockThatIsToldLateIsRenewedFirst: what is late is told by no clock that somebody sets.
func TestATowerLockThatIsToldLateIsRenewedFirst(t *testing.T) {
	t.Parallel()
	r := newTowerRun(t, 600, time.Now)
	_, err := r.acquire(t.Context())
	require.NoError(t, err)
	since := r.since
	require.NoError(t, r.confirm(t.Context()))
	require.Equal(t, since, r.since, "there is time")
	r.since -= r.every
	require.NoError(t, r.confirm(t.Context()))
	require.Greater(t, r.since, since)
	require.NoError(t, r.giveBack(t.Context()))

	r = newTowerRun(t, 2, func() time.Time {
		time.Sleep(1100 * time.Millisecond) // what counts is how long it takes
		return time.Now()
	})
	_, err = r.acquire(t.Context())
	require.ErrorContains(t, err, "not acquired: the renewal took longer than the lifetime of the lock")
	require.NoFileExists(t, r.locks.LockPath(r.name))
}

// TestATowerLockIsGivenBackForAWhile: one attempt may fail, and none is made at what is lost.
func TestATowerLockIsGivenBackForAWhile(t *testing.T) {
	t.Parallel()
	r := newTowerRun(t, 600, time.Now)
	_, err := r.acquire(t.Context())
	require.NoError(t, err)
	path := r.locks.LockPath(r.name)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	time.AfterFunc(2*giveBackPause, func() { _ = os.WriteFile(path, content, 0o600) })
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.giveBack(ended))
	require.NoFileExists(t, path)

	began := time.Now()
	require.NoError(t, r.giveBack(t.Context()))
	require.Less(t, time.Since(began), giveBackTime)
	require.Error(t, r.confirm(t.Context()))
}
