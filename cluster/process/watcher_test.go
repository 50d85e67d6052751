package process

import (
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newWatcher answers a watcher that is closed with the test, and what it says.
func newWatcher(t *testing.T) (*Watcher, chan ID) {
	t.Helper()
	gone := make(chan ID, 1000)
	w, err := NewWatcher(func(id ID, _ End) { gone <- id })
	require.NoError(t, err)
	w.othersFirst = 0
	t.Cleanup(func() { _ = w.Close() })
	return w, gone
}

func requireGone(t *testing.T, gone <-chan ID, id ID) {
	t.Helper()
	select {
	case got := <-gone:
		require.Equal(t, id, got)
	case <-time.After(20 * time.Second):
		t.Fatalf("%v has ended, but nobody says so", id)
	}
}

// requireQuiet makes sure that nothing else is said, up to something that is said after it.
func requireQuiet(t *testing.T, w *Watcher, gone <-chan ID) {
	t.Helper()
	last := ID{os.Getpid(), 1}
	require.NoError(t, w.Watch(last))
	requireGone(t, gone, last)
	require.Empty(t, gone)
}

func TestWatchKilled(t *testing.T) {
	w, gone := newWatcher(t)
	cat := start(t, exec.Command("cat"))
	id := cat.id()
	require.NoError(t, w.Watch(id))
	requireQuiet(t, w, gone)
	cat.kill()
	requireGone(t, gone, id)
	cat.end()
	requireQuiet(t, w, gone)
}

func TestWatchExit(t *testing.T) {
	w, gone := newWatcher(t)
	cat := start(t, exec.Command("cat"))
	id := cat.id()
	require.NoError(t, w.Watch(id))
	require.NoError(t, cat.stdin.Close())
	require.NoError(t, cat.Wait())
	requireGone(t, gone, id)
}

func TestWatchEnded(t *testing.T) {
	w, gone := newWatcher(t)
	cat := start(t, exec.Command("cat"))
	id := cat.id()
	cat.kill()
	require.True(t, zombie(id.PID))
	require.NoError(t, w.Watch(id))
	requireGone(t, gone, id)
	cat.end()
	for range 3 {
		require.NoError(t, w.Watch(id))
		requireGone(t, gone, id)
	}
	requireQuiet(t, w, gone)
}

func TestWatchPIDOfAnother(t *testing.T) {
	w, gone := newWatcher(t)
	cat := start(t, exec.Command("cat"))
	former := ID{cat.pid(), cat.id().Start - 1}
	require.NoError(t, w.Watch(former))
	requireGone(t, gone, former)

	thread := ID{startChild(t, 0, "threads").numbers()[1], 1}
	require.NoError(t, w.Watch(thread))
	requireGone(t, gone, thread)
}

func TestWatchLeaderless(t *testing.T) {
	w, gone := newWatcher(t)
	p := startChild(t, 0, "leaderless")
	p.numbers()
	id := p.id()
	require.NoError(t, w.Watch(id))
	requireQuiet(t, w, gone)
	p.kill()
	requireGone(t, gone, id)
}

func TestWatchTwice(t *testing.T) {
	w, gone := newWatcher(t)
	cat := start(t, exec.Command("cat"))
	id := cat.id()
	before := descriptors(t)
	for range 5 {
		require.NoError(t, w.Watch(id))
	}
	require.Equal(t, before+1, descriptors(t))
	cat.kill()
	requireGone(t, gone, id)
	require.Equal(t, before, descriptors(t))
	requireQuiet(t, w, gone)
}

func TestWatchMany(t *testing.T) {
	before := descriptors(t)
	w, gone := newWatcher(t)
	var cats []*program
	left := make(map[ID]bool)
	for range 100 {
		cat := start(t, exec.Command("cat"))
		require.NoError(t, w.Watch(cat.id()))
		left[cat.id()] = true
		cats = append(cats, cat)
	}
	for _, cat := range cats {
		require.NoError(t, cat.Process.Kill())
	}
	for len(left) > 0 {
		select {
		case id := <-gone:
			require.True(t, left[id], "%v", id)
			delete(left, id)
		case <-time.After(20 * time.Second):
			t.Fatalf("%d have ended, but nobody says so", len(left))
		}
	}
	requireQuiet(t, w, gone)
	for _, cat := range cats {
		cat.end()
	}
	require.NoError(t, w.Close())
	require.Equal(t, before, descriptors(t))
}

func TestWatchFromGone(t *testing.T) {
	second := start(t, exec.Command("cat"))
	gone := make(chan ID, 10)
	var w *Watcher
	ready := make(chan struct{})
	w, err := NewWatcher(func(id ID, _ End) {
		<-ready
		if id.PID != second.pid() {
			require.NoError(t, w.Watch(second.id()))
		}
		gone <- id
	})
	require.NoError(t, err)
	close(ready)
	defer func() { require.NoError(t, w.Close()) }()
	former := ID{os.Getpid(), 1}
	require.NoError(t, w.Watch(former))
	requireGone(t, gone, former)
	id := second.id()
	second.kill()
	requireGone(t, gone, id)
}

func TestWatchWithoutDescriptors(t *testing.T) {
	w, gone := newWatcher(t)
	cat := start(t, exec.Command("cat"))
	ended := start(t, exec.Command("cat"))
	id, endedID := cat.id(), ended.id()
	ended.end()
	withoutDescriptors(t, func() {
		require.ErrorIs(t, w.Watch(id), unix.EMFILE)
		require.ErrorIs(t, w.Watch(endedID), unix.EMFILE)
	})
	require.Empty(t, gone)
	require.NoError(t, w.Watch(endedID))
	requireGone(t, gone, endedID)
	require.NoError(t, w.Watch(id))
	cat.kill()
	requireGone(t, gone, id)
}

func TestWatchNoProcess(t *testing.T) {
	w, gone := newWatcher(t)
	require.ErrorIs(t, w.Watch(ID{}), ErrUnknown)
	requireQuiet(t, w, gone)
}

func TestWatcherClose(t *testing.T) {
	cat := start(t, exec.Command("cat"))
	id := cat.id()
	before := descriptors(t)
	var calls atomic.Int32
	w, err := NewWatcher(func(ID, End) { calls.Add(1) })
	require.NoError(t, err)
	require.NoError(t, w.Watch(id))
	require.NoError(t, w.Close())
	require.Equal(t, before, descriptors(t))
	require.ErrorIs(t, w.Watch(id), os.ErrClosed)
	require.ErrorIs(t, w.Close(), os.ErrClosed)
	cat.kill()
	require.Zero(t, calls.Load())
}
