package fusefs

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

// threads is a process whose threads lock a file, as the kernel tells of it, and another mount from which is seen who has it.
type threads struct {
	t    *testing.T
	s    *session
	fs   *fileSystem
	ino  uint64
	file *os.File // on the other mount
}

const threadsOwner = 77

func startThreads(t *testing.T) *threads {
	t.Helper()
	c := newCluster()
	dir, _ := mountFor(t, c)
	path := writeFile(t, dir, "file", "content")
	c.mu.Lock()
	none := int64(0)
	c.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_SetLimits{SetLimits: &storepb.SetLimits{LockDelay: &none}}}})
	c.mu.Unlock()
	s := c.open()
	return &threads{
		t: t, s: s, fs: newFileSystem(s, Options{Logger: slog.New(slog.DiscardHandler)}),
		ino: lstat(t, filepath.Join(dir, "file")).Ino, file: openFile(t, path, os.O_RDWR),
	}
}

func (p *threads) open() (fh uint64) {
	p.t.Helper()
	var out fuse.OpenOut
	require.Equal(p.t, fuse.OK, p.fs.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: p.ino}, Flags: unix.O_RDWR}, &out))
	return out.Fh
}

func (p *threads) set(fh uint64, typ uint32, at uint64) fuse.Status {
	return p.fs.SetLk(nil, &fuse.LkIn{Fh: fh, Owner: threadsOwner, Lk: fuse.FileLock{Start: at, End: at, Typ: typ}})
}

// starts begins a request. What it answers waits for the answer.
func (p *threads) starts(request func() fuse.Status) (answer chan fuse.Status) {
	answer = make(chan fuse.Status, 1)
	go func() { answer <- request() }()
	return answer
}

// elsewhere tries to lock a byte on the other mount.
func (p *threads) elsewhere(at int64) error {
	return unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1})
}

// requireKept watches for a moment that a byte stays locked. [require.Never] would go on with that when the test has ended.
func (p *threads) requireKept(t *testing.T, at int64) {
	t.Helper()
	for range 10 {
		require.ErrorIs(t, p.elsewhere(at), unix.EAGAIN)
		time.Sleep(10 * time.Millisecond)
	}
}

// count answers how many locks of the file and requests there are.
func (p *threads) count() int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	list := &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Ino: p.ino, Viewer: &storepb.Viewer{}}}
	return len(p.s.ns.Query(&storepb.Query{Query: list}).GetAdvisoryLocks())
}

// TestAllReleasesOfAnOwnerComeBeforeItsNextLock has the requests of two threads time out, and the cluster told of that one after
// the other.
func TestAllReleasesOfAnOwnerComeBeforeItsNextLock(t *testing.T) {
	p := startThreads(t)
	var cut atomic.Bool
	var drops atomic.Int32
	both, late := make(chan struct{}, 2), make(chan struct{})
	cut.Store(true)
	p.s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		switch {
		case op.GetTakeLock() != nil && cut.Load():
			for both <- struct{}{}; len(both) < 2; {
				time.Sleep(time.Millisecond)
			}
			return nil, true, context.DeadlineExceeded
		case op.GetDropLocks() == nil:
			return nil, false, nil
		}
		switch drops.Add(1) {
		case 1:
			return nil, true, context.DeadlineExceeded
		case 3:
			<-late
		}
		return nil, false, nil
	})
	first, second := p.open(), p.open()
	answers := []chan fuse.Status{
		p.starts(func() fuse.Status { return p.set(first, unix.F_WRLCK, 1) }),
		p.starts(func() fuse.Status { return p.set(second, unix.F_WRLCK, 2) }),
	}
	for _, answer := range answers {
		require.NotEqual(t, fuse.OK, <-answer)
	}
	cut.Store(false)
	third := p.open()
	locked := p.starts(func() fuse.Status { return p.set(third, unix.F_WRLCK, 3) })
	require.Eventually(t, func() bool { return drops.Load() == 3 }, 10*time.Second, time.Millisecond)
	time.Sleep(10 * time.Millisecond) // for a lock that does not wait
	close(late)
	require.Equal(t, fuse.OK, <-locked)
	p.requireKept(t, 3)
}

// TestALockThatComesThroughALostDescriptorIsReleased: its thread is told that it has none, and could not release it.
func TestALockThatComesThroughALostDescriptorIsReleased(t *testing.T) {
	p := startThreads(t)
	var drops atomic.Int32
	came := make(chan struct{})
	p.s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		switch {
		case op.GetDropLocks() != nil:
			drops.Add(1)
		case op.GetTakeLock().GetStart() == 1:
			<-came
			return nil, true, context.DeadlineExceeded
		case op.GetTakeLock().GetStart() == 2:
			close(came)
			for drops.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil, false, nil
	})
	fh := p.open()
	late := p.starts(func() fuse.Status { return p.set(fh, unix.F_WRLCK, 2) })
	require.Equal(t, fuse.EIO, p.set(fh, unix.F_WRLCK, 1))
	require.Equal(t, fuse.EIO, <-late)
	require.Eventually(t, func() bool { return p.elsewhere(2) == nil }, 10*time.Second, time.Millisecond)
}

// TestAWaitOutlastsAClose has a thread close the file while another one waits for a lock of it: that releases what the process
// has, not what it wants.
func TestAWaitOutlastsAClose(t *testing.T) {
	p := startThreads(t)
	require.NoError(t, p.elsewhere(1))
	fh, other := p.open(), p.open()
	waits := p.starts(func() fuse.Status {
		in := &fuse.LkIn{Fh: fh, Owner: threadsOwner, Lk: fuse.FileLock{End: math.MaxInt64, Typ: unix.F_WRLCK}}
		return p.fs.SetLkw(nil, in)
	})
	isWaiting := func() bool { return p.count() == 2 }
	require.Eventually(t, isWaiting, 10*time.Second, time.Millisecond)
	require.Equal(t, fuse.OK, p.fs.Flush(nil, &fuse.FlushIn{Fh: other, LockOwner: threadsOwner}))
	require.Eventually(t, isWaiting, 10*time.Second, time.Millisecond)
	require.Empty(t, waits)
	require.NoError(t, unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}))
	require.Equal(t, fuse.OK, <-waits)
	require.ErrorIs(t, p.elsewhere(1), unix.EAGAIN)
}

// TestAReleaseThatWasNotAskedForComes: many programs do not look whether a release succeeds, and keep the file open.
func TestAReleaseThatWasNotAskedForComes(t *testing.T) {
	x, path, elsewhere := withTiming(t, false)
	x.notAsked.Store(true)
	f, other := openFile(t, path, os.O_RDWR), openFile(t, elsewhere, os.O_RDWR)
	require.NoError(t, setLock(f, unix.F_WRLCK, 10))
	x.cut.Store(true)
	require.ErrorIs(t, setLock(f, unix.F_UNLCK, 10), unix.ETIMEDOUT)
	x.cut.Store(false)
	require.Eventually(t, func() bool { return setLock(other, unix.F_WRLCK, 10) == nil }, 10*time.Second, time.Millisecond)
	require.NoError(t, setLock(other, unix.F_UNLCK, 10))
	require.NoError(t, setLock(f, unix.F_WRLCK, 10))
}

// TestOnlyLocksThatAreHeldAreLostWithTheirSession: a program may keep a file open, and lock it now and then.
func TestOnlyLocksThatAreHeldAreLostWithTheirSession(t *testing.T) {
	p := startThreads(t)
	idle, half, shared := p.open(), p.open(), p.open()
	lock := func(fh, owner uint64, typ uint32, length uint64) fuse.Status {
		return p.fs.SetLk(nil, &fuse.LkIn{Fh: fh, Owner: owner, Lk: fuse.FileLock{End: length - 1, Typ: typ}})
	}
	require.Equal(t, fuse.OK, lock(idle, 1, unix.F_UNLCK, 10))
	require.Equal(t, fuse.OK, lock(idle, 1, unix.F_RDLCK, 10))
	require.Equal(t, fuse.OK, lock(idle, 1, unix.F_UNLCK, 10))
	require.Equal(t, fuse.OK, lock(half, 2, unix.F_RDLCK, 10))
	require.Equal(t, fuse.OK, lock(half, 2, unix.F_UNLCK, 5))
	require.Equal(t, fuse.OK, lock(shared, 3, unix.F_RDLCK, 10))
	require.Equal(t, fuse.OK, lock(shared, 4, unix.F_RDLCK, 10))
	require.Equal(t, fuse.OK, lock(shared, 4, unix.F_UNLCK, 10))

	p.s.id, p.s.seq = p.s.open().id, 0
	read := func(fh uint64) fuse.Status {
		_, code := p.fs.Read(nil, &fuse.ReadIn{Fh: fh, Size: 1}, nil)
		return code
	}
	require.Equal(t, fuse.OK, read(idle))
	require.Equal(t, fuse.OK, lock(idle, 1, unix.F_RDLCK, 10))
	for fh, owner := range map[uint64]uint64{half: 2, shared: 3} {
		require.Equal(t, fuse.EIO, read(fh))
		require.Equal(t, fuse.EIO, lock(fh, owner, unix.F_RDLCK, 10))
	}
}

// TestALockIsNotTakenByAReleaseFromBefore has a wait end while the cluster is still to be told of a close that has returned.
func TestALockIsNotTakenByAReleaseFromBefore(t *testing.T) {
	p := startThreads(t)
	require.NoError(t, p.elsewhere(1))
	var cut atomic.Bool
	var tried, told atomic.Int32
	cut.Store(true)
	p.s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		switch {
		case op.GetDropLocks() == nil:
		case cut.Load():
			tried.Add(1)
			return nil, true, context.DeadlineExceeded
		default:
			told.Add(1)
		}
		return nil, false, nil
	})
	fh, other := p.open(), p.open()
	waits := p.starts(func() fuse.Status {
		in := &fuse.LkIn{Fh: fh, Owner: threadsOwner, Lk: fuse.FileLock{End: math.MaxInt64, Typ: unix.F_WRLCK}}
		return p.fs.SetLkw(nil, in)
	})
	require.Eventually(t, func() bool { return p.count() == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, fuse.OK, p.fs.Flush(nil, &fuse.FlushIn{Fh: other, LockOwner: threadsOwner}))
	require.NoError(t, unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}))
	require.Eventually(t, func() bool { return tried.Load() > 2 }, 10*time.Second, time.Millisecond)
	cut.Store(false)
	require.Equal(t, fuse.OK, <-waits)
	require.Eventually(t, func() bool { return told.Load() > 0 }, 10*time.Second, time.Millisecond)
	p.requireKept(t, 1)
}
