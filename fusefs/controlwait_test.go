package fusefs

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// speechless does not answer what becomes of a lock.
type speechless struct {
	*session
	asked chan struct{}
}

func (s speechless) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if query.GetGetLock() == nil {
		return s.session.Query(ctx, query)
	}
	s.asked <- struct{}{}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(8 * time.Second):
		return nil, context.DeadlineExceeded
	}
}

// TestWhoWaitsIsEndedWhileTheClusterIsSilent at once, as anybody who waits.
func TestWhoWaitsIsEndedWhileTheClusterIsSilent(t *testing.T) {
	dir, ops := t.TempDir(), speechless{newCluster().open(), make(chan struct{}, 1)}
	mountAt(t, dir, ops, Options{})
	shell(t, dir, "set -C; echo mine > lock")
	cat := exec.Command("cat", filepath.Join(dir, ".lockfs/wait/lock"))
	require.NoError(t, cat.Start())
	<-ops.asked
	began := time.Now()
	require.NoError(t, cat.Process.Kill())
	require.Error(t, cat.Wait())
	require.Less(t, time.Since(began), 3*time.Second)
}
