package process

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ended is what a watcher reports.
type ended struct {
	id  ID
	end End
}

// newEndWatcher returns a watcher that is closed with the test, and its reports.
func newEndWatcher(t *testing.T) (*Watcher, chan ended) {
	t.Helper()
	gone := make(chan ended, 100)
	w, err := NewWatcher(func(id ID, end End) { gone <- ended{id, end} })
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w, gone
}

// sources are the ways by which a watcher learns how a process ended.
var sources = map[string]func(t *testing.T, w *Watcher){
	"the kernel of this host": func(*testing.T, *Watcher) {},
	"pidfd": func(t *testing.T, w *Watcher) {
		if !pidfdsTell() {
			t.Log("this kernel is older than Linux 6.15")
		}
		w.byPidfd = pidfdsTell()
	},
	"process connector": func(t *testing.T, w *Watcher) {
		w.byPidfd = false
		w.listen()
		if w.exits == nil {
			t.Log("the process connector does not serve this process")
			w.byPidfd = pidfdsTell()
		}
	},
}

func await(t *testing.T, gone <-chan ended) ended {
	t.Helper()
	select {
	case got := <-gone:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("no process was reported to have ended")
		return ended{}
	}
}

func exitStatus(status int) unix.WaitStatus { return unix.WaitStatus(status << 8) }

// TestAWatcherReportsHowAProcessEnded, whatever tells it, and also if the parent has waited by then.
func TestAWatcherReportsHowAProcessEnded(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		status unix.WaitStatus
	}{
		"success":                     {"read x || :", 0},
		"failure":                     {"read x || :; exit 3", exitStatus(3)},
		"SIGKILL":                     {"read x || :; kill -9 $$", unix.WaitStatus(unix.SIGKILL)},
		"SIGTERM":                     {"read x || :; kill $$; sleep 60", unix.WaitStatus(unix.SIGTERM)},
		"a trap that exits":           {"trap 'exit 143' TERM; read x || :; kill $$; sleep 60", exitStatus(143)},
		"a trap that kills again":     {"trap 'trap - INT; kill -INT $$' INT; read x || :; kill -INT $$; sleep 60", unix.WaitStatus(unix.SIGINT)},
		"another program in its turn": {"read x || :; exec sh -c 'exit 4'", exitStatus(4)},
	} {
		for source, use := range sources {
			t.Run(name+", "+source, func(t *testing.T) {
				t.Parallel()
				w, gone := newEndWatcher(t)
				use(t, w)
				p := start(t, exec.Command("sh", "-c", row.script))
				id := p.id()
				require.NoError(t, w.Watch(id))
				require.NoError(t, p.stdin.Close())
				_ = p.Wait()
				require.Equal(t, ended{id, End{Known: true, Status: row.status}}, await(t, gone))
			})
		}
	}
}

// TestAThreadThatEndsIsNoEnd of its process, nor are the threads that end as another program is executed.
func TestAThreadThatEndsIsNoEnd(t *testing.T) {
	for source, use := range sources {
		t.Run(source, func(t *testing.T) {
			w, gone := newEndWatcher(t)
			use(t, w)
			leaderless, other := startChild(t, 0, "leaderless"), startChild(t, 0, "exec")
			leaderless.numbers()
			other.numbers()
			for _, p := range []*program{leaderless, other} {
				require.NoError(t, w.Watch(p.id()))
			}
			_, err := other.stdin.Write([]byte("x"))
			require.NoError(t, err)
			other.numbers()
			require.Empty(t, gone)
			for _, p := range []*program{leaderless, other} {
				id := p.id()
				p.kill()
				require.Equal(t, ended{id, End{Known: true, Status: unix.WaitStatus(unix.SIGKILL)}}, await(t, gone))
			}
		})
	}
}

// TestAZombieTellsItsStatus, before its parent waits and to a watcher that comes later.
func TestAZombieTellsItsStatus(t *testing.T) {
	w, gone := newEndWatcher(t)
	p := start(t, exec.Command("cat"))
	id := p.id()
	p.kill()
	require.True(t, zombie(id.PID))
	require.NoError(t, w.Watch(id))
	require.Equal(t, ended{id, End{Known: true, Status: unix.WaitStatus(unix.SIGKILL)}}, await(t, gone))
}

// TestAStatusThatIsNotShownIsAwaited until the parent waits, but not for ever.
func TestAStatusThatIsNotShownIsAwaited(t *testing.T) {
	sees := seesStatuses
	seesStatuses = func() bool { return false }
	defer func() { seesStatuses = sees }()
	for _, waits := range []bool{true, false} {
		w, gone := newEndWatcher(t)
		if !waits {
			w.awaitWait = time.Millisecond
		}
		p := start(t, exec.Command("cat"))
		id := p.id()
		require.NoError(t, w.Watch(id))
		require.NoError(t, p.stdin.Close())
		for !zombie(id.PID) {
			time.Sleep(time.Millisecond)
		}
		if waits {
			require.NoError(t, p.Wait())
		}
		require.Equal(t, ended{id, End{Known: waits && pidfdsTell()}}, await(t, gone))
	}
}

// TestAnEndBeforeItIsWatched is known of a process that was prepared, and of one that was watched before.
// Of another it is not.
func TestAnEndBeforeItIsWatched(t *testing.T) {
	w, gone := newEndWatcher(t)
	prepared, other := start(t, exec.Command("cat")), start(t, exec.Command("cat"))
	id, otherID := prepared.id(), other.id()
	require.NoError(t, w.Prepare(id))
	require.NoError(t, w.Prepare(id))
	for _, p := range []*program{prepared, other} {
		p.kill()
		_ = p.Wait()
	}
	for !func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.recent.of(id).Known }() {
		time.Sleep(time.Millisecond)
	}
	w.othersFirst = time.Millisecond
	require.Empty(t, gone, "a process that was only prepared is not reported")
	for range 2 {
		require.NoError(t, w.Watch(id))
		require.Equal(t, ended{id, End{Known: true, Status: unix.WaitStatus(unix.SIGKILL)}}, await(t, gone))
	}
	require.NoError(t, w.Watch(otherID))
	require.Equal(t, ended{otherID, End{}}, await(t, gone))
	require.NoError(t, w.Prepare(otherID))
	require.Empty(t, gone)
}

// TestLostMessagesOfTheConnectorAreNoEnd: an exit may be that of one thread, and the end of the process
// is among the lost messages.
func TestLostMessagesOfTheConnectorAreNoEnd(t *testing.T) {
	x := listenToExits()
	if x == nil {
		t.Log("the process connector does not serve this process")
		return
	}
	defer x.close()
	require.NoError(t, unix.SetsockoptInt(x.socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1))
	killed, exited := start(t, exec.Command("cat")), start(t, exec.Command("cat"))
	x.begin(killed.pid())
	x.begin(exited.pid())
	killed.kill()
	exited.end()
	for range 50 {
		require.NoError(t, exec.Command("true").Run())
	}
	require.Equal(t, End{Known: true, Status: unix.WaitStatus(unix.SIGKILL)}, x.of(killed.pid()))
	require.Equal(t, End{}, x.of(exited.pid()))
	x.end(killed.pid())
	require.Equal(t, End{}, x.of(killed.pid()))
}

func TestIsRelease(t *testing.T) {
	for release, is := range map[string]bool{
		"6.15.0": true, "6.18.44-fc-v669": true, "7.0": true, "6.15-rc1": true, "6.14.9": false, "5.20": false, "6": false, "": false, "six.nineteen": false,
	} {
		require.Equal(t, is, isRelease(release, 6, 15), release)
	}
}

func TestOnlyTheLastEndsAreRemembered(t *testing.T) {
	var recent recentEnds
	for pid := range 2*maxRecentEnds + 1 {
		recent.add(ID{PID: pid + 1}, End{Known: true})
		recent.add(ID{PID: pid + 1}, End{Known: true, Status: 9})
	}
	require.Len(t, recent.ends, maxRecentEnds)
	require.Equal(t, End{Known: true}, recent.of(ID{PID: 2*maxRecentEnds + 1}))
	require.Equal(t, End{}, recent.of(ID{PID: 1}))
}
