package fusefs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestNoResult(t *testing.T) {
	dir, s := mountFor(t, newCluster())
	for _, row := range []struct {
		err  error
		want syscall.Errno
	}{
		{fmt.Errorf("no quorum: %w", context.DeadlineExceeded), syscall.ETIMEDOUT},
		{errors.New("something else"), syscall.EIO},
	} {
		s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
			return nil, op != nil, row.err
		})
		require.ErrorIs(t, os.Mkdir(filepath.Join(dir, "d"), 0o755), row.want)
		s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
			return nil, query != nil, row.err
		})
		_, err := os.Lstat(filepath.Join(dir, "d"))
		require.ErrorIs(t, err, row.want)
	}
	s.intercept(nil)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755), "the mount stays usable")
}
