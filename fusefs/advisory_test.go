package fusefs

import (
	"context"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/filelock"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestLocksComeAfterAClose has a program close a file, open it again and lock it while the cluster cannot be told of the close.
func TestLocksComeAfterAClose(t *testing.T) {
	c := newCluster()
	dir, s := mountFor(t, c)
	elsewhere, _ := mountFor(t, c)
	path := writeFile(t, dir, "lock", "")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	lock := func(file *os.File, typ int16) error {
		return unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: typ})
	}
	require.NoError(t, lock(file, unix.F_WRLCK))

	var cut atomic.Bool
	var tried, told atomic.Int32
	cut.Store(true)
	s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if op.GetDropLocks() == nil {
			return nil, false, nil
		}
		tried.Add(1)
		if cut.Load() {
			return nil, true, context.DeadlineExceeded
		}
		told.Add(1)
		return nil, false, nil
	})
	require.NoError(t, file.Close())
	again := openFile(t, path, os.O_RDWR)
	locked := make(chan error, 1)
	go func() { locked <- lock(again, unix.F_WRLCK) }()
	require.Eventually(t, func() bool { return tried.Load() > 2 }, 10*time.Second, time.Millisecond)
	require.Empty(t, locked, "it would be lost when the cluster is told")
	cut.Store(false)
	require.NoError(t, <-locked)
	require.Equal(t, int32(1), told.Load())
	other := openFile(t, filepath.Join(elsewhere, "lock"), os.O_RDWR)
	require.ErrorIs(t, unix.FcntlFlock(other.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}), unix.EAGAIN)
}

// TestLateReleases has the kernel tell of the end of a file after it has given the file's number to another, which has locked.
func TestLateReleases(t *testing.T) {
	c := newCluster()
	dir, _ := mountFor(t, c)
	path := writeFile(t, dir, "lock", "")
	late := newFileSystem(c.open(), Options{Logger: slog.New(slog.DiscardHandler)})
	elsewhere := openFile(t, path, os.O_RDWR)

	const number = 77
	whole := fuse.FileLock{End: math.MaxInt64, Typ: unix.F_WRLCK}
	open := func() (fh uint64) {
		var out fuse.OpenOut
		in := fuse.OpenIn{InHeader: fuse.InHeader{NodeId: lstat(t, filepath.Join(dir, "lock")).Ino}, Flags: unix.O_RDWR}
		require.Equal(t, fuse.OK, late.Open(nil, &in, &out))
		return out.Fh
	}
	lock := func(fh uint64, flags uint32) {
		require.Equal(t, fuse.OK, late.SetLk(nil, &fuse.LkIn{Fh: fh, Owner: number, Lk: whole, LkFlags: flags}))
	}
	release := func(fh uint64) {
		late.Release(nil, &fuse.ReleaseIn{Fh: fh, LockOwner: number, ReleaseFlags: fuse.FUSE_RELEASE_FLOCK_UNLOCK})
	}
	for name, kind := range map[string]struct {
		flags uint32
		try   func() error
	}{
		"flock": {fuse.FUSE_LK_FLOCK, func() error { return unix.Flock(int(elsewhere.Fd()), unix.LOCK_SH|unix.LOCK_NB) }},
		"record": {0, func() error {
			return unix.FcntlFlock(elsewhere.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first := open()
			lock(first, kind.flags)
			second := open()
			if kind.flags != 0 { // its lock excludes another open file's, unless that is closed
				late.Flush(nil, &fuse.FlushIn{Fh: first})
				done := make(chan struct{})
				go func() {
					defer close(done)
					lock(second, kind.flags)
				}()
				release(first)
				<-done
			} else {
				lock(second, kind.flags)
				release(first)
			}
			require.ErrorIs(t, kind.try(), unix.EAGAIN)
			release(second)
			require.NoError(t, kind.try())
		})
	}
}

// TestALockIsTestedInTheSessionThatThereIs has a session end while a lock is tested, and another process of the mount have it in the next one.
func TestALockIsTestedInTheSessionThatThereIs(t *testing.T) {
	c := newCluster()
	dir, s := mountFor(t, c)
	path := writeFile(t, dir, "lock", "")
	file := openFile(t, path, os.O_RDWR)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	var tests atomic.Int32
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetTestLock() == nil {
			return nil, false, nil
		}
		if tests.Add(1) == 1 {
			next := c.open()
			_, _, err := next.RequestLock(&storepb.Caller{}, &storepb.TakeLock{
				Ino: st.Ino, Kind: storepb.LockKind_RECORD, Owner: 4711, Pid: uint32(os.Getppid()), Type: storepb.LockType_EXCLUSIVE, End: math.MaxInt64,
			})
			require.NoError(t, err)
			s.id = next.id
		}
		return nil, false, nil
	})
	got := unix.Flock_t{Type: unix.F_WRLCK}
	require.NoError(t, unix.FcntlFlock(file.Fd(), unix.F_GETLK, &got))
	require.Equal(t, int32(os.Getppid()), got.Pid)
	require.Equal(t, int32(2), tests.Load())
}

// TestAReleaseInProgressIsWaitedForFromAnotherMount closes a locked file, whose release the cluster learns of late.
func TestAReleaseInProgressIsWaitedForFromAnotherMount(t *testing.T) {
	for kind, lock := range map[string]func(fd uintptr) error{
		"flock": func(fd uintptr) error { return unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) },
		"ofd": func(fd uintptr) error {
			return unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c := newCluster()
			here, s := mountFor(t, c)
			there, _ := mountFor(t, c)
			held := openFile(t, writeFile(t, here, "lock", ""), os.O_RDWR)
			other := openFile(t, filepath.Join(there, "lock"), os.O_RDWR)
			require.NoError(t, lock(held.Fd()))
			require.ErrorIs(t, lock(other.Fd()), unix.EAGAIN)
			refused := make(chan struct{})
			s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
				if op.GetDropLocks() != nil {
					<-refused
				}
				return nil, false, nil
			})
			id := ids.Session(s.id)
			eventually(t, "its mount answers", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				released := c.releases[id]
				c.releases[id] = func(ino ids.Inode, kind storepb.LockKind, owner ids.Owner) bool {
					close(refused)
					return released(ino, kind, owner)
				}
				return released != nil
			})
			require.NoError(t, held.Close())
			require.NoError(t, lock(other.Fd()))
			<-refused
		})
	}
}

// TestALockGrantedToAKilledProgramIsReleased: another process has the file open, would keep the lock, and does not know of it.
func TestALockGrantedToAKilledProgramIsReleased(t *testing.T) {
	c := newCluster()
	here, s := mountFor(t, c)
	there, _ := mountFor(t, c)
	shared := openFile(t, writeFile(t, here, "lock", ""), os.O_RDWR)
	other := openFile(t, filepath.Join(there, "lock"), os.O_RDWR)
	elsewhere := int(other.Fd())
	require.NoError(t, unix.Flock(elsewhere, unix.LOCK_EX))
	waits := make(chan struct{}, 1)
	var granted sync.Once
	s.intercept(func(op *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetAwaitLock() != nil {
			select {
			case waits <- struct{}{}:
			default:
			}
		}
		if op.GetInterruptLock() != nil {
			granted.Do(func() { assert.NoError(t, unix.Flock(elsewhere, unix.LOCK_UN)) })
		}
		return nil, false, nil
	})
	command := exec.Command("flock", "3")
	command.ExtraFiles = []*os.File{shared}
	require.NoError(t, command.Start())
	<-waits
	require.NoError(t, command.Process.Kill())
	require.Error(t, command.Wait())
	eventually(t, "the lock is free", func() bool { return unix.Flock(elsewhere, unix.LOCK_EX|unix.LOCK_NB) == nil })
	require.NoError(t, unix.Flock(elsewhere, unix.LOCK_UN))
	require.NoError(t, unix.Flock(int(shared.Fd()), unix.LOCK_EX|unix.LOCK_NB), "its file is not lost")
}

// TestReleasesOfASharedLockAreWaitedFor: several programs on other mounts have closed a file of which they shared the lock.
func TestReleasesOfASharedLockAreWaitedFor(t *testing.T) {
	c := newCluster()
	there, _ := mountFor(t, c)
	path := writeFile(t, there, "lock", "")
	var held []*os.File
	for range 4 {
		here, s := mountFor(t, c)
		file, err := os.OpenFile(filepath.Join(here, "lock"), os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Flock(int(file.Fd()), unix.LOCK_SH))
		held = append(held, file)
		asked := make(chan struct{})
		s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
			if op.GetDropLocks() != nil {
				<-asked
			}
			return nil, false, nil
		})
		eventually(t, "its mount answers", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			released := c.releases[ids.Session(s.id)]
			c.releases[ids.Session(s.id)] = func(ino ids.Inode, kind storepb.LockKind, owner ids.Owner) bool {
				close(asked) // once
				return released(ino, kind, owner)
			}
			return released != nil
		})
	}
	other := openFile(t, path, os.O_RDWR)
	for _, file := range held {
		require.NoError(t, file.Close())
	}
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

// TestOneRequestElsewhereWaitsForEachClose: while the cluster cannot be told of a release, further requests are refused at once.
func TestOneRequestElsewhereWaitsForEachClose(t *testing.T) {
	c := newCluster()
	here, s := mountFor(t, c)
	held := openFile(t, writeFile(t, here, "lock", ""), os.O_RDWR)
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(int(held.Fd()), &st))
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	var owner ids.Owner
	releasing, told := make(chan struct{}), make(chan struct{})
	s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if drop := op.GetDropLocks(); drop != nil {
			owner = ids.Owner(drop.GetOwners()[0])
			close(releasing)
			<-told
		}
		return nil, false, nil
	})
	var released func(ids.Inode, storepb.LockKind, ids.Owner) bool
	eventually(t, "its mount answers", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		released = c.releases[ids.Session(s.id)]
		return released != nil
	})
	require.NoError(t, held.Close())
	<-releasing
	began := time.Now()
	const requests = 20
	for range requests {
		require.False(t, released(ids.Inode(st.Ino), storepb.LockKind_FLOCK, owner))
	}
	require.Less(t, time.Since(began), requests*filelock.ReleaseWait/2)
	close(told)
	eventually(t, "the cluster knows of the release", func() bool {
		return released(ids.Inode(st.Ino), storepb.LockKind_FLOCK, owner)
	})
}
