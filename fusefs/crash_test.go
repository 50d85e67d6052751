package fusefs

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/answer"
	"lockfs/fusefs/estate"
	"lockfs/fusefs/observation"
	"lockfs/fusefs/serve"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// succeed goes on with a mount as another process would after this one was killed while a request was under way.
func succeed(t *testing.T, m *Mounted, ops Operator) *Mounted {
	t.Helper()
	return succeedWith(t, m, ops, Options{Logger: m.logger})
}

func succeedWith(t *testing.T, m *Mounted, ops Operator, opts Options) *Mounted {
	t.Helper()
	require.True(t, m.following.end(5*time.Second))
	_, err := m.server.Stop(50 * time.Millisecond)
	require.ErrorIs(t, err, serve.ErrBusy)
	m.serving.Wait()
	left, err := estate.Load(m.Estate())
	require.NoError(t, err)
	require.NoError(t, answer.AskAgain(m.connection.Device))
	heir, err := TakeOver(left, m.connection.Files(), ops, opts, func(*Mounted) error { return nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Unmount()) })
	return heir
}

// TestWhatAnOpenSawIsKnownAfterACrash that comes while a file is being opened: who reads it then sees that lock, and removes no other.
func TestWhatAnOpenSawIsKnownAfterACrash(t *testing.T) {
	c := newCluster()
	there, elsewhere := mountFor(t, c)
	describeContent(elsewhere)
	writeFile(t, there, "f", swarmLock)
	self := []observation.Process{{PID: 1, Start: 1}}
	options := Options{Family: func(uint32) iter.Seq[observation.Process] { return slices.Values(self) }}
	dir, ops := t.TempDir(), c.open()
	m := mountAt(t, dir, ops, options)
	path, err := unix.Open(filepath.Join(dir, "f"), unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	isFile := func(ino uint64) bool { return ino > namespace.RootIno }
	asked, killed, opened := make(chan struct{}), make(chan struct{}), make(chan *os.File, 1)
	ops.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if isFile(query.GetGetAttr().GetIno()) { // between the look for the name and the open
			close(asked)
			<-killed
		}
		return nil, false, nil
	})
	go func() {
		file, err := os.Open(filepath.Join(dir, "f"))
		assert.NoError(t, err)
		opened <- file
	}()
	<-asked
	ops.intercept(nil)
	options.Logger = m.logger
	succeedWith(t, m, ops, options)
	close(killed)

	file := <-opened
	requireContent(t, file, swarmLock)
	require.NoError(t, file.Close())
	require.NoError(t, os.Remove(filepath.Join(there, "f")))
	writeFile(t, there, "f", strings.Replace(swarmLock, "worker 1", "another", 1))
	require.ErrorIs(t, os.Remove(filepath.Join(dir, "f")), syscall.ENOENT)

	openFile(t, fmt.Sprintf("/proc/self/fd/%d", path), os.O_RDONLY) // no name is looked up
	require.NoError(t, unix.Close(path))
}

// TestLeftByACrash goes on with what was open, locked, removed, listed and waited for. Only what was changing something fails.
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
