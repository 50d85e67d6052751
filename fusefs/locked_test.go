package fusefs

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

// timing has the requests for locks of a mount time out, after they are done or instead.
type timing struct {
	s        *session
	cut      atomic.Bool // requests time out
	done     bool        // after they are done
	notAsked atomic.Bool // they were never sent
	held     atomic.Bool // nobody can be told of a release
	dropping atomic.Bool // somebody has tried to
	lost     atomic.Bool // and said that the locks are lost
}

func (x *timing) do(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
	if drop := op.GetDropLocks(); drop != nil {
		x.lost.Store(drop.GetLost())
		x.dropping.Store(true)
		return nil, x.held.Load(), context.DeadlineExceeded
	}
	take := op.GetTakeLock()
	if take == nil || !x.cut.Load() {
		return nil, false, nil
	}
	if x.done {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		x.s.seq++
		x.s.apply(&storepb.Command{Session: x.s.id, Seq: x.s.seq, Caller: &storepb.Caller{}, Op: op})
	}
	if x.notAsked.Load() {
		return &storepb.Result{Code: storepb.Code_CANCELLED}, true, context.DeadlineExceeded
	}
	return nil, true, context.DeadlineExceeded
}

// withTiming mounts a cluster twice, without a lock delay: nothing but an error keeps who lost a lock from going on.
func withTiming(t *testing.T, done bool) (x *timing, path, elsewhere string) {
	t.Helper()
	c := newCluster()
	dir, s := mountFor(t, c)
	other, _ := mountFor(t, c)
	c.mu.Lock()
	none := int64(0)
	c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_SetLimits{SetLimits: &storepb.SetLimits{LockDelay: &none}}}})
	c.mu.Unlock()
	x = &timing{s: s, done: done}
	s.intercept(x.do)
	path = writeFile(t, dir, "file", "content")
	return x, path, filepath.Join(other, "file")
}

func setLock(f *os.File, typ int16, length int64) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: typ, Len: length})
}

// TestLocksAreLostWhereMoreThanTheRequestTimesOut: whoever may believe to have a lock is told that it has not, before another
// one can get it.
func TestLocksAreLostWhereMoreThanTheRequestTimesOut(t *testing.T) {
	for name, kind := range map[string]struct {
		have, want, other func(*os.File) error
	}{
		"a flock to be converted": {
			have:  func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) },
			want:  func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) },
			other: func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) },
		},
		"a range to be upgraded": {
			have:  func(f *os.File) error { return setLock(f, unix.F_RDLCK, 10) },
			want:  func(f *os.File) error { return setLock(f, unix.F_WRLCK, 5) },
			other: func(f *os.File) error { return setLock(f, unix.F_WRLCK, 10) },
		},
		"a range to be split": {
			have:  func(f *os.File) error { return setLock(f, unix.F_WRLCK, 10) },
			want:  func(f *os.File) error { return setLock(f, unix.F_UNLCK, 5) },
			other: func(f *os.File) error { return setLock(f, unix.F_WRLCK, 10) },
		},
	} {
		for _, done := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", and is not", true: ", and is"}[done], func(t *testing.T) {
				x, path, elsewhere := withTiming(t, done)
				f, bystander, other := openFile(t, path, os.O_RDWR), openFile(t, path, os.O_RDWR), openFile(t, elsewhere, os.O_RDWR)
				require.NoError(t, kind.have(f))
				x.cut.Store(true)
				x.held.Store(true)
				require.ErrorIs(t, kind.want(f), unix.EIO)
				x.cut.Store(false)
				require.Eventually(t, x.dropping.Load, 10*time.Second, time.Millisecond)
				require.True(t, x.lost.Load())
				require.ErrorIs(t, kind.other(other), unix.EAGAIN, "it was given away before the cluster was told")
				requireLost(t, f)
				x.held.Store(false)
				require.Eventually(t, func() bool { return kind.other(other) == nil }, 10*time.Second, time.Millisecond)
				requireLost(t, f)
				require.ErrorIs(t, kind.have(f), unix.EIO)
				_, err := bystander.ReadAt(make([]byte, 1), 0)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				require.ErrorIs(t, kind.have(openFile(t, path, os.O_RDWR)), unix.EAGAIN)
			})
		}
	}
}

func requireLost(t *testing.T, f *os.File) {
	t.Helper()
	_, err := f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, unix.EIO)
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorIs(t, setLock(f, unix.F_UNLCK, 1), unix.EIO)
}

// TestALockThatTimesOutIsNobodys: who had nothing has nothing then, and may try again.
func TestALockThatTimesOutIsNobodys(t *testing.T) {
	for name, request := range map[string]func(f *os.File) error{
		"taken":    func(f *os.File) error { return setLock(f, unix.F_WRLCK, 10) },
		"released": func(f *os.File) error { return setLock(f, unix.F_UNLCK, 10) },
	} {
		for _, done := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", not done", true: ", done"}[done], func(t *testing.T) {
				x, path, elsewhere := withTiming(t, done)
				f, other := openFile(t, path, os.O_RDWR), openFile(t, elsewhere, os.O_RDWR)
				if name == "released" {
					require.NoError(t, setLock(f, unix.F_WRLCK, 10))
				}
				x.cut.Store(true)
				require.ErrorIs(t, request(f), unix.ETIMEDOUT)
				x.cut.Store(false)
				require.Eventually(t, func() bool { return setLock(other, unix.F_WRLCK, 10) == nil }, 10*time.Second, time.Millisecond)
				require.False(t, x.lost.Load())
				_, err := f.WriteAt([]byte("x"), 0)
				require.NoError(t, err)
				require.ErrorIs(t, setLock(f, unix.F_WRLCK, 10), unix.EAGAIN)
				require.NoError(t, setLock(other, unix.F_UNLCK, 10))
				require.NoError(t, setLock(f, unix.F_WRLCK, 10))
			})
		}
	}
}

// TestAllDescriptorsOfAProcessAreLost: its record locks are one, through whichever they were taken.
func TestAllDescriptorsOfAProcessAreLost(t *testing.T) {
	x, path, _ := withTiming(t, false)
	first, second, third := openFile(t, path, os.O_RDWR), openFile(t, path, os.O_RDWR), openFile(t, path, os.O_RDWR)
	lock := func(f *os.File, at int64) error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1})
	}
	require.NoError(t, lock(first, 1))
	require.NoError(t, lock(second, 2))
	x.cut.Store(true)
	require.ErrorIs(t, lock(second, 3), unix.EIO)
	x.cut.Store(false)
	requireLost(t, first)
	requireLost(t, second)
	_, err := third.ReadAt(make([]byte, 1), 0)
	require.NoError(t, err)
}

// TestARequestThatWasNotAskedChangesNothing: nobody has to be told of it, and what its owner has stays its own.
func TestARequestThatWasNotAskedChangesNothing(t *testing.T) {
	x, path, elsewhere := withTiming(t, false)
	x.notAsked.Store(true)
	f, other := openFile(t, path, os.O_RDWR), openFile(t, elsewhere, os.O_RDWR)
	require.NoError(t, setLock(f, unix.F_RDLCK, 10))
	for _, typ := range []int16{unix.F_WRLCK, unix.F_UNLCK} {
		x.cut.Store(true)
		require.ErrorIs(t, setLock(f, typ, 5), unix.ETIMEDOUT)
		x.cut.Store(false)
		_, err := f.WriteAt([]byte("x"), 0)
		require.NoError(t, err)
		require.ErrorIs(t, setLock(other, unix.F_WRLCK, 10), unix.EAGAIN)
	}
	require.NoError(t, setLock(f, unix.F_WRLCK, 10))
	require.False(t, x.dropping.Load())
}
