package swarm_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/swarm"
)

func TestSwarmDirWaitsForOtherRemovers(t *testing.T) {
	d := swarm.Dir(t.TempDir())
	put(t, d, "task-001", example)
	other, err := os.Open(string(d))
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	require.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = d.Acquire(ctx, "task-001", "worker-1", 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = d.Acquire(ctx, "task-002", "worker-1", 0)
	require.NoError(t, err, "there is nothing to remove")
	require.NoError(t, other.Close())
	_, err = d.Acquire(t.Context(), "task-001", "worker-1", 0)
	require.NoError(t, err)
}
