package fusefs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/crashstate"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/orphanreply"
	"lockfs/fusefs/serve"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// succeed goes on with a mount as another process would after this one was killed while a request was under
// way.
func succeed(t *testing.T, m *Mounted, ops Operator) *Mounted {
	t.Helper()
	return succeedWith(t, m, ops, Options{Logger: m.logger})
}

// succeedWith is succeed with answers that the one that was killed has left.
func succeedWith(t *testing.T, m *Mounted, ops Operator, opts Options, answers ...[]byte) *Mounted {
	t.Helper()
	require.True(t, m.following.end(5*time.Second))
	_, err := m.server.Stop(50 * time.Millisecond)
	require.ErrorIs(t, err, serve.ErrBusy)
	m.serving.Wait()
	left, err := crashstate.Load(m.Estate())
	require.NoError(t, err)
	orphanreply.Tell(m.connection.Device, answers)
	require.NoError(t, orphanreply.AskAgain(m.connection.Device))
	heir, err := TakeOver(left, m.connection.Files(), answers, ops, opts, func(*Mounted) error { return nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Unmount()) })
	return heir
}

// oneFamily takes all for one process.
func oneFamily(uint32) iter.Seq[lookguard.Process] {
	return slices.Values([]lookguard.Process{{PID: 1, Start: 1}})
}

// TestWhatAnOpenSawIsKnownAfterACrash that comes while a file is being opened: who reads it then sees that
// lock, and removes no other. Files that no name is looked up of are opened at once.
func TestWhatAnOpenSawIsKnownAfterACrash(t *testing.T) {
	path := -1
	dir := readAcrossACrash(t, func(dir string) {
		var err error
		writeFile(t, dir, "g", "content")
		path, err = unix.Open(filepath.Join(dir, "g"), unix.O_PATH|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", path), filepath.Join(dir, "link")))
	}, func(path string) error {
		content, err := os.ReadFile(path)
		assert.Equal(t, swarmLock, string(content))
		return err
	})

	without := []string{fmt.Sprintf("/proc/self/fd/%d", path), filepath.Join(dir, "link")}
	if os.Geteuid() == 0 {
		over := writeFile(t, dir, "h", "")
		require.NoError(t, unix.Mount(filepath.Join(dir, "g"), over, "", unix.MS_BIND, ""))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(over, unix.MNT_DETACH)) })
		without = append(without, over)
	}
	for range 3 {
		for _, name := range without {
			openFile(t, name, os.O_RDONLY)
			require.NoError(t, unix.Truncate(name, 1), name)
		}
	}
	require.NoError(t, unix.Close(path))
}

// readAcrossACrash has the daemon die as somebody opens a lock to read it. Another is there then, and is not
// removed.
func readAcrossACrash(t *testing.T, before func(dir string), read func(path string) error) (dir string) {
	t.Helper()
	c := newCluster()
	there, elsewhere := mountFor(t, c)
	describeContent(elsewhere)
	writeFile(t, there, "f", swarmLock)
	dir, ops := t.TempDir(), c.open()
	m := mountAt(t, dir, ops, Options{Family: oneFamily})
	before(dir)
	asked, killed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ops.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetGetAttr().GetIno() > namespace.RootIno { // between the look for the name and the open
			close(asked)
			<-killed
		}
		return nil, false, nil
	})
	go func() { done <- read(filepath.Join(dir, "f")) }()
	<-asked
	ops.intercept(nil)
	succeedWith(t, m, ops, Options{Logger: m.logger, Family: oneFamily})
	close(killed)
	require.NoError(t, <-done)
	require.NoError(t, os.Remove(filepath.Join(there, "f")))
	writeFile(t, there, "f", strings.Replace(swarmLock, "worker 1", "another", 1))
	require.ErrorIs(t, os.Remove(filepath.Join(dir, "f")), syscall.ENOENT)
	return dir
}

// TestTheMakerOfALockIsKnownAfterACrash that comes before its process is told, which its guard does then.
func TestTheMakerOfALockIsKnownAfterACrash(t *testing.T) {
	for what, makeLock := range map[string]func(path string) error{
		"file": func(path string) error {
			fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
			if err == nil {
				_, errWrite := unix.Write(fd, []byte(swarmLock))
				err = errors.Join(errWrite, unix.Close(fd))
			}
			return err
		},
		"other name": func(path string) error { return unix.Link(filepath.Join(filepath.Dir(path), "g"), path) },
		"renamed":    func(path string) error { return unix.Rename(filepath.Join(filepath.Dir(path), "g"), path) },
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster()
			there, elsewhere := mountFor(t, c)
			describeContent(elsewhere)
			writeFile(t, there, "g", swarmLock)
			ops := &mortal{session: c.open(), answered: make(chan []byte, 1), killed: make(chan struct{})}
			describeContent(ops.session)
			dir := t.TempDir()
			m := mountAt(t, dir, ops, Options{Family: oneFamily})
			lock, made := filepath.Join(dir, "f"), make(chan error, 1)
			go func() { made <- makeLock(lock) }()
			answer := <-ops.answered
			succeedWith(t, m, ops.session, Options{Logger: m.logger, Family: oneFamily}, answer)
			require.NoError(t, <-made)
			close(ops.killed)
			require.NoError(t, os.Remove(filepath.Join(there, "f")))
			writeFile(t, there, "f", strings.Replace(swarmLock, "worker 1", "another", 1))
			require.ErrorIs(t, os.Remove(lock), syscall.ENOENT)
		})
	}
}

// TestWhatWasMadeIsToldAfterACrash although the cluster is silent when the kernel asks the next process for
// the attributes: the process that was killed had answered only the first request of an open(2).
func TestWhatWasMadeIsToldAfterACrash(t *testing.T) {
	require.NoError(t, makeAcrossACrash(t, 0, func(lock string) error {
		fd, err := unix.Open(lock, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}))
}

// makeAcrossACrash has a process be killed between the two questions, so long after it answered the first,
// and the cluster be silent since.
func makeAcrossACrash(t *testing.T, age time.Duration, makeLock func(path string) error) error {
	t.Helper()
	ops := &mortal{session: newCluster().open(), answered: make(chan []byte, 1), killed: make(chan struct{})}
	dir := t.TempDir()
	m := mountAt(t, dir, ops, Options{})
	lock, made := filepath.Join(dir, "f"), make(chan error, 1)
	go func() { made <- makeLock(lock) }()
	answer := <-ops.answered
	binary.NativeEndian.PutUint64(answer, uint64(hostinfo.BootTime()-age))
	var header struct {
		At, Thread uint64
		fuse.OutHeader
		NodeID, Generation, EntryValid uint64
	}
	clear(answer[binary.Size(&header):][:8]) // AttrValid: as the process itself tells it
	var silent atomic.Int32
	ops.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetGetAttr().GetIno() > namespace.RootIno {
			silent.Add(1)
			return nil, true, context.DeadlineExceeded
		}
		return nil, false, nil
	})
	succeedWith(t, m, ops.session, Options{Logger: m.logger}, answer)
	err := <-made
	close(ops.killed)
	ops.intercept(nil)
	require.EqualValues(t, 1, silent.Load())
	require.NotZero(t, lstat(t, lock).Ino)
	return err
}

// mortal is an Operator of a process that is killed when it is about to tell of a creation.
type mortal struct {
	*session
	answered chan []byte
	killed   chan struct{}
}

func (m *mortal) Create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	var told []byte
	_, err := m.session.Create(ctx, caller, op, func(result *storepb.Result) []byte {
		told = answer(result)
		return told
	})
	if err != nil {
		return nil, err
	}
	m.answered <- told
	<-m.killed
	return nil, context.Canceled
}

// TestLeftByACrash goes on with what was open, locked, removed, listed and waited for. Only what was changing
// something fails.
func TestLeftByACrash(t *testing.T) {
	dir, ops := t.TempDir(), newCluster().open()
	m := mountAt(t, dir, ops, Options{})
	held, waiting, orphan, closed := openIn(t, dir, "held"), openIn(t, dir, "held"), openIn(t, dir, "orphan"), openIn(t, dir, "closed")
	_, err := unix.Write(orphan, []byte("kept"))
	require.NoError(t, err)
	require.NoError(t, unix.Unlink(filepath.Join(dir, "orphan")))
	require.NoError(t, unix.Flock(held, unix.LOCK_EX))
	record := unix.Flock_t{Type: unix.F_WRLCK, Start: 3, Len: 4}
	require.NoError(t, unix.FcntlFlock(uintptr(held), unix.F_OFD_SETLK, &record))
	require.NoError(t, unix.Flock(closed, unix.LOCK_EX))
	listed, err := os.Open(dir)
	require.NoError(t, err)
	got := waitFor(t, ops, waiting)
	asked, killed, made, untold := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan struct{}, 1)
	ops.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		switch {
		case op.GetCreate() != nil:
			close(asked)
			<-killed
		case op.GetDropLocks() != nil:
			untold <- struct{}{}
			<-killed
			return nil, true, os.ErrDeadlineExceeded
		}
		return nil, false, nil
	})
	go func() { made <- unix.Mkdir(filepath.Join(dir, "slow"), 0o755) }()
	<-asked
	require.NoError(t, unix.Close(closed))
	<-untold // of which the cluster has not been told
	ops.intercept(nil)
	succeed(t, m, ops)

	require.ErrorIs(t, <-made, unix.EIO)
	_, err = unix.Pwrite(held, []byte("more"), 0)
	require.NoError(t, err)
	kept := make([]byte, 4)
	_, err = unix.Pread(orphan, kept, 0)
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
	names, err := listed.Readdirnames(-1)
	require.NoError(t, err)
	require.Contains(t, names, "held")

	other := openIn(t, dir, "held")
	require.ErrorIs(t, unix.Flock(other, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
	require.ErrorIs(t, unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &record), unix.EAGAIN)
	require.Empty(t, got)
	require.NoError(t, unix.Close(held))
	require.NoError(t, <-got)
	require.NoError(t, unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &record), "it went with its description")
	again := openIn(t, dir, "closed")
	require.NoError(t, unix.Flock(again, unix.LOCK_EX), "the close is told of")
	for _, fd := range []int{waiting, orphan, other, again} {
		require.NoError(t, unix.Close(fd))
	}
	require.NoError(t, listed.Close())
	close(killed)
}
