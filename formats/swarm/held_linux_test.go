package swarm_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/swarm"
)

func TestHoldAndExtend(t *testing.T) {
	dir := swarm.Dir(t.TempDir())
	held, err := dir.Hold(t.Context(), "task-001", "worker-0", time.Minute)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dir.Hold(ended, "task-001", "worker-1", 0)
	var blocked *swarm.HeldError
	require.ErrorAs(t, err, &blocked)

	acquired := held.Lock.AcquiredAt
	require.NoError(t, held.Extend(t.Context(), time.Hour))
	entry, err := dir.Check("task-001")
	require.NoError(t, err)
	require.Equal(t, held.Lock, entry.Lock)
	require.Equal(t, acquired, entry.Lock.AcquiredAt)
	require.WithinDuration(t, time.Now().Add(time.Hour), entry.Lock.ExpiresAt, 30*time.Second)

	got := make(chan error, 1)
	go func() {
		_, err := dir.Hold(t.Context(), "task-001", "worker-1", 0)
		got <- err
	}()
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, <-got)
	require.NoError(t, os.Remove(filepath.Join(string(dir), swarm.FileName("task-001"))))
	var lost *swarm.LostError
	require.ErrorAs(t, held.Extend(t.Context(), time.Hour), &lost)
	_, err = dir.Hold(t.Context(), "../x", "worker", 0)
	require.Error(t, err)
}
