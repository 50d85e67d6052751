package fusefs

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/control"
	"lockfs/fusefs/inotify"
	"lockfs/fusefs/serve"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/storepb"
)

func openIn(t testing.TB, dir, name string) int {
	t.Helper()
	fd, err := unix.Open(filepath.Join(dir, name), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	require.NoError(t, err)
	return fd
}

// waitFor waits for a flock in the background, and says when it has it.
func waitFor(t testing.TB, s *session, fd int) <-chan error {
	t.Helper()
	waits, got := make(chan struct{}, 1), make(chan error, 1)
	s.intercept(func(op *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetAwaitLock() != nil {
			select {
			case waits <- struct{}{}:
			default:
			}
		}
		return nil, false, nil
	})
	go func() { got <- unix.Flock(fd, unix.LOCK_EX) }()
	<-waits
	return got
}

// TestHandedOver goes on with a mount as another process would: what was open, locked, removed, listed and
// waited for is as before.
func TestHandedOver(t *testing.T) {
	dir, ops := t.TempDir(), newCluster().open()
	m := mountAt(t, dir, ops, Options{})
	held, waiting, orphan := openIn(t, dir, "held"), openIn(t, dir, "held"), openIn(t, dir, "orphan")
	_, err := unix.Write(orphan, []byte("kept"))
	require.NoError(t, err)
	require.NoError(t, unix.Unlink(filepath.Join(dir, "orphan")))
	require.NoError(t, unix.Flock(held, unix.LOCK_EX))
	record := unix.Flock_t{Type: unix.F_WRLCK, Start: 3, Len: 4}
	require.NoError(t, unix.FcntlFlock(uintptr(held), unix.F_OFD_SETLK, &record))
	status, err := os.Open(filepath.Join(dir, ".lockfs/status"))
	require.NoError(t, err)
	whole, err := os.ReadFile(filepath.Join(dir, ".lockfs/status"))
	require.NoError(t, err)
	listed, err := os.Open(dir)
	require.NoError(t, err)
	got := waitFor(t, ops, waiting)
	var asked atomic.Int32
	ops.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if op.GetTakeLock().GetWait() || op.GetInterruptLock() != nil {
			asked.Add(1)
		}
		return nil, false, nil
	})

	h, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	require.Len(t, h.given, 1, "who waits for a lock")
	require.NoError(t, Fits(h.State))
	heir, err := TakeOver(h.State, h.Files, nil, ops, Options{Logger: m.logger}, func(*Mounted) error { return nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Unmount()) })

	_, err = unix.Pwrite(held, []byte("more"), 0)
	require.NoError(t, err)
	kept := make([]byte, 4)
	_, err = unix.Pread(orphan, kept, 0)
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
	require.Equal(t, 1, ops.pinned())
	begin := make([]byte, 10)
	_, err = status.ReadAt(begin, 0)
	require.NoError(t, err)
	require.Equal(t, string(whole[:10]), string(begin))
	names, err := listed.Readdirnames(-1)
	require.NoError(t, err)
	require.Equal(t, []string{"held"}, names)

	other := openIn(t, dir, "held")
	require.ErrorIs(t, unix.Flock(other, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
	require.ErrorIs(t, unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &record), unix.EAGAIN)
	require.Empty(t, got)
	require.NoError(t, unix.Close(held))
	require.NoError(t, <-got)
	require.Zero(t, asked.Load(), "the request keeps its place in the queue, and the cluster is not asked again")
	require.NoError(t, unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &record), "it went with its description")
	for _, fd := range []int{waiting, orphan, other} {
		require.NoError(t, unix.Close(fd))
	}
	require.NoError(t, status.Close())
	require.NoError(t, listed.Close())
	require.Eventually(t, func() bool { return ops.pinned() == 0 }, 5*time.Second, time.Millisecond)
}

// TestHandoverIsPutOff while a request does not end: it is answered as if nothing had been, and so is who
// waits for a lock.
func TestHandoverIsPutOff(t *testing.T) {
	dir, ops := t.TempDir(), newCluster().open()
	m := mountAt(t, dir, ops, Options{})
	held, waiting := openIn(t, dir, "held"), openIn(t, dir, "held")
	require.NoError(t, unix.Flock(held, unix.LOCK_EX))
	got := waitFor(t, ops, waiting)
	asked, goOn, made := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ops.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if op.GetCreate() != nil {
			close(asked)
			<-goOn
		}
		return nil, false, nil
	})
	go func() { made <- unix.Mkdir(filepath.Join(dir, "slow"), 0o755) }()
	<-asked
	_, err := m.HandOver(50 * time.Millisecond)
	require.ErrorIs(t, err, serve.ErrBusy)
	_, err = os.Stat(filepath.Join(dir, "held"))
	require.NoError(t, err)
	close(goOn)
	require.NoError(t, <-made)
	require.Empty(t, got)
	require.NoError(t, unix.Close(held))
	require.NoError(t, <-got)
	require.NoError(t, unix.Close(waiting))
}

// TestAnotherAgreement refuses a mount on which another program has agreed upon something else with the
// kernel.
func TestAnotherAgreement(t *testing.T) {
	m := mountAt(t, t.TempDir(), newCluster().open(), Options{})
	offer, err := m.Offer()
	require.NoError(t, err)
	require.NoError(t, Fits(offer))
	options := mountOptions(Options{Logger: m.logger})
	options.EnableLocks = false
	require.ErrorContains(t, m.init.Fits(options), "agreed upon")
	require.Error(t, Fits([]byte(`{"Version": 0}`)))
}

// TestWhatAnEarlierProcessMadeIsKnownAsThat to each process after it.
func TestWhatAnEarlierProcessMadeIsKnownAsThat(t *testing.T) {
	noted := []thread.Saved[made]{
		{Thread: 1, Value: made{attr: fuse.Attr{Ino: 10}}, At: time.Hour},
		{Thread: 2, Value: made{attr: fuse.Attr{Ino: 20}, before: true}, At: time.Minute},
	}
	fresh := func() *dispatcher {
		return newDispatcher(newFileSystem(newCluster().open(), Options{Logger: slog.New(slog.DiscardHandler)}), inotify.NewKnown(), control.Budgets{})
	}
	from, to := fresh(), fresh()
	from.calls.created.Restore(noted)
	s := new(state)
	require.NoError(t, s.saveCalls(from))
	packed, err := json.Marshal(s)
	require.NoError(t, err)
	s = new(state)
	require.NoError(t, json.Unmarshal(packed, s))
	require.NoError(t, s.restoreCalls(to))
	require.ElementsMatch(t, noted, to.calls.created.Save())
}
