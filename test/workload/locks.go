package workload

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/history"
	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// LockHistory returns all records of locks.
func (b *Bustle) LockHistory(t testing.TB, opTimeout, lockDelay time.Duration) *history.LockHistory {
	t.Helper()
	calls, err := history.ReadLockCalls(b.records...)
	require.NoError(t, err)
	for _, call := range calls {
		b.judgeRight(&call.Record)
	}
	slack := lockDelay / 20               // cluster time measures the delay and may run a little faster
	const prompt = 300 * time.Millisecond // clients interrupt themselves sooner
	return &history.LockHistory{Calls: calls, OpTimeout: opTimeout, Prompt: prompt, LockDelay: lockDelay - slack, DisksFill: b.DisksFill}
}

// CheckLocks requires an order that explains all results of locks, and that no file was removed. If the
// search takes too long for a file, undecided is an error.
func (b *Bustle) CheckLocks(t testing.TB, opTimeout, lockDelay time.Duration) (checked *history.LockHistory, undecided error) {
	t.Helper()
	checked = b.LockHistory(t, opTimeout, lockDelay)
	if undecided = checked.Check(CheckTime); !onlyUndecided(undecided) {
		require.NoError(t, undecided)
	}
	b.requireFiles(t)
	return checked, undecided
}

// requireFiles requires that the locked files still exist.
func (b *Bustle) requireFiles(t testing.TB) {
	t.Helper()
	require.Len(t, b.inodes, len(b.dirs)*len(b.Files))
	script := []string{"-ec", `for d; do stat -c %i "$d/x" "$d/y"; done`, "sh"}
	require.Equal(t, b.inodes, strings.Fields(b.Hosts[0].MustRun(t, "sh", append(script, b.dirs...)...)))
}

// CheckHolds requires one holder at a time for each locked name, and returns the number of acquisitions.
func (b *Bustle) CheckHolds(t testing.TB) (calls []*history.LockCall, holds int) {
	t.Helper()
	calls, err := history.ReadLockCalls(b.records...)
	require.NoError(t, err)
	holds, err = history.CheckHolds(calls)
	require.NoError(t, err)
	return calls, holds
}

// AwaitUnlocked waits until no lock of flock or fcntl is held or waited for.
func AwaitUnlocked(t testing.TB, c *testcluster.Cluster) {
	t.Helper()
	hosts.Eventually(t, "no lock is left", func() (string, bool) {
		text, err := c.Nodes[0].Lockfs("locks", "--json")
		if err != nil {
			return err.Error(), false
		}
		var locks []struct {
			Advisory []any `json:"advisory_locks"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &locks))
		for _, lock := range locks {
			if len(lock.Advisory) > 0 {
				return text, false
			}
		}
		return "", true
	})
}

// onlyUndecided reports whether a check found no violation but did not finish.
func onlyUndecided(err error) bool {
	return errors.Is(err, history.ErrUndecided) && !errors.Is(err, history.ErrImpossible)
}
