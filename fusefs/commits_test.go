package fusefs

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

// TestCommits: what a program does costs no more commits than it has to. Each is a round trip and a disk's.
func TestCommits(t *testing.T) {
	record := func(f *os.File, command int, typ int16, length int64) error {
		return unix.FcntlFlock(f.Fd(), command, &unix.Flock_t{Type: typ, Len: length})
	}
	for _, test := range []struct {
		name string
		do   func(t *testing.T, f *os.File) // f is closed after that
		want []string
	}{
		{"nothing", func(*testing.T, *os.File) {}, nil},
		{"flock and unlock", func(t *testing.T, f *os.File) {
			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
		}, []string{"lock", "lock"}},
		{"flock", func(t *testing.T, f *os.File) {
			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
		}, []string{"lock", "drop"}},
		{"flock twice", func(t *testing.T, f *os.File) {
			for range 2 {
				require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_SH))
				require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
			}
		}, []string{"lock", "lock", "lock", "lock"}},
		{"fcntl and unlock", func(t *testing.T, f *os.File) {
			require.NoError(t, record(f, unix.F_SETLK, unix.F_WRLCK, 10))
			require.NoError(t, record(f, unix.F_SETLK, unix.F_UNLCK, 10))
		}, []string{"lock", "lock"}},
		{"fcntl and unlock of all", func(t *testing.T, f *os.File) {
			require.NoError(t, record(f, unix.F_OFD_SETLKW, unix.F_WRLCK, 10))
			require.NoError(t, record(f, unix.F_OFD_SETLK, unix.F_UNLCK, 0))
		}, []string{"lock", "lock"}},
		{"fcntl and unlock of a part", func(t *testing.T, f *os.File) {
			require.NoError(t, record(f, unix.F_SETLK, unix.F_WRLCK, 10))
			require.NoError(t, record(f, unix.F_SETLK, unix.F_UNLCK, 9))
		}, []string{"lock", "lock", "drop"}},
		{"unlink", func(t *testing.T, f *os.File) { require.NoError(t, os.Remove(f.Name())) }, []string{"unlink", "unpin"}},
		{"rename over it", func(t *testing.T, f *os.File) {
			require.NoError(t, os.Rename(filepath.Join(filepath.Dir(f.Name()), "other"), f.Name()))
		}, []string{"rename", "unpin"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, dir := newCluster().open(), t.TempDir()
			var released atomic.Int32
			mountAt(t, dir, s, Options{Observer: func(op string, _ syscall.Errno, _ time.Duration) {
				if op == "release" {
					released.Add(1)
				}
			}})
			path := writeFile(t, dir, "file", "content")
			writeFile(t, dir, "other", "")
			eventually(t, "both files are closed", func() bool { return released.Load() == 2 })
			var mu sync.Mutex
			var commits []string
			s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if op != nil {
					commits = append(commits, kindOf(op))
				}
				return nil, false, nil
			})
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			test.do(t, f)
			require.NoError(t, f.Close())
			eventually(t, "the file is closed", func() bool { return released.Load() == 3 })
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, test.want, commits)
		})
	}
}

func kindOf(op *storepb.Op) string {
	switch op.GetOp().(type) {
	case *storepb.Op_TakeLock:
		return "lock"
	case *storepb.Op_DropLocks:
		return "drop"
	case *storepb.Op_Unlink:
		return "unlink"
	case *storepb.Op_Rename:
		return "rename"
	case *storepb.Op_Pin:
		return "pin"
	case *storepb.Op_Unpin:
		return "unpin"
	}
	return op.String()
}

// TestARemovalThatTimesOutKeepsNothing: the cluster may have kept the inode for this mount, and is told when it is closed.
func TestARemovalThatTimesOutKeepsNothing(t *testing.T) {
	dir, s := mountFor(t, newCluster())
	f := openFile(t, writeFile(t, dir, "file", "content"), os.O_RDWR)
	var removed atomic.Bool
	s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if op.GetUnlink() == nil || !removed.CompareAndSwap(false, true) {
			return nil, false, nil
		}
		_, err := s.Mutate(t.Context(), &storepb.Caller{}, op)
		require.NoError(t, err)
		return nil, true, context.DeadlineExceeded
	})
	require.ErrorIs(t, unix.Unlink(f.Name()), unix.ETIMEDOUT)
	require.Equal(t, 1, s.pinned())
	_, err := f.ReadAt(make([]byte, 1), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	eventually(t, "nothing is kept", func() bool { return s.pinned() == 0 })
}
