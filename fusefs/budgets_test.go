package fusefs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/serve"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// budgeted is a mount with budgets, in a directory that all users can reach.
type budgeted struct {
	*Mounted
	ops     *session
	dir     string
	budgets *Budgets
}

func mountWithBudgets(t *testing.T, limits Limits) budgeted {
	t.Helper()
	ops, dir, budgets := newCluster().open(), t.TempDir(), NewBudgets(limits)
	require.NoError(t, syscall.Chmod(filepath.Dir(dir), 0o755))
	return budgeted{mountAt(t, dir, ops, Options{Budgets: budgets}), ops, dir, budgets}
}

// takeOver returns another process of the mount, with budgets of its own.
func (b *budgeted) takeOver(t *testing.T, h *Handover, limits Limits) budgeted {
	t.Helper()
	budgets := NewBudgets(limits)
	heir, err := TakeOver(h.State, h.Files, nil, b.ops, Options{Logger: b.logger, Budgets: budgets}, func(*Mounted) error { return nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Unmount()) })
	return budgeted{heir, b.ops, b.dir, budgets}
}

// queueCalls has user 1000 begin so many look-ups, which take until open is called. It waits until those beyond the user's budget wait for
// their turn. done waits for the end of all.
func (b *budgeted) queueCalls(t *testing.T, calls, each int) (begun chan string, open, done func()) {
	t.Helper()
	begun, open = slowNames(b.ops)
	require.NoError(t, unix.Mkdir(filepath.Join(b.dir, "of1000"), 0o777)) // the kernel has changes of a directory wait for look-ups in it
	_, lines := startAs(t, 1000, b.dir, "python3", "-c", statMany, "of1000/slow", fmt.Sprint(calls))
	t.Cleanup(open) // before the program is waited for
	eventually(t, "the others wait", func() bool { return len(begun) == each && b.server.Queued() == calls-each })
	return begun, open, func() {
		t.Helper()
		require.True(t, lines.Scan())
		require.Equal(t, "done", lines.Text())
		require.Len(t, begun, calls)
	}
}

// slowNames has look-ups of names that begin with "slow" take until open is called.
func slowNames(s *session) (begun chan string, open func()) {
	begun, gate := make(chan string, 100), make(chan struct{})
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if name := string(query.GetLookup().GetName()); strings.HasPrefix(name, "slow") {
			begun <- name
			<-gate
		}
		return nil, false, nil
	})
	return begun, sync.OnceFunc(func() { close(gate) })
}

// startAs starts a program of a user in a directory. It is waited for at the end of the test at the latest.
func startAs(t *testing.T, uid uint32, dir, program string, args ...string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command("sh", append([]string{"-c", `cd "$0" && exec "$@"`, dir, program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	return cmd, bufio.NewScanner(output)
}

// statMany looks names up in a thread each, and prints each error that is not ENOENT.
const statMany = `
import os, sys, threading
def look(number):
    try:
        os.stat('%s%d' % (sys.argv[1], number))
    except FileNotFoundError:
        pass
    except OSError as error:
        print(error, flush=True)
threads = [threading.Thread(target=look, args=(number,)) for number in range(int(sys.argv[2]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print('done', flush=True)
`

// TestCallsOfOneUserLeaveRoomForOthers: those beyond the user's budget wait for others of the user to end, and are all done in the end.
func TestCallsOfOneUserLeaveRoomForOthers(t *testing.T) {
	const calls, each = 20, 4
	m := mountWithBudgets(t, Limits{CallsPerUser: each})
	begun, open, done := m.queueCalls(t, calls, each)
	for _, uid := range []uint32{0, 1001} { // another user's calls are done meanwhile
		output, err := runAs(t, uid, m.dir, "sh", "-ec", fmt.Sprintf("mkdir %d.lock; rmdir %[1]d.lock; echo x > %[1]d; cat %[1]d", uid))
		require.NoError(t, err, output)
	}
	killed, _ := startAs(t, 1000, m.dir, "python3", "-c", statMany, "of1000/slower", "1")
	eventually(t, "one more waits", func() bool { return m.server.Queued() == calls-each+1 })
	require.NoError(t, killed.Process.Kill()) // it need not wait for its turn
	require.Error(t, killed.Wait())
	require.Len(t, begun, each)

	open()
	done()
	require.Zero(t, m.server.Queued())
	require.Zero(t, m.budgets.calls.Usage(1).Total)
}

// TestQueuedCallsAreHandedOver: another process does those whose turn had not come.
func TestQueuedCallsAreHandedOver(t *testing.T) {
	const calls, each = 20, 4
	m := mountWithBudgets(t, Limits{CallsPerUser: each})
	begun, open, done := m.queueCalls(t, calls, each)
	time.AfterFunc(10*time.Millisecond, open)
	h, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	require.NotEmpty(t, h.given)
	require.Len(t, begun, calls-len(h.given))
	m.takeOver(t, h, Limits{})
	done()
}

// patient answers for attributes once the caller is known to be gone.
type patient struct {
	*session
	is    atomic.Bool
	asked chan struct{}
}

func (p *patient) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if query.GetGetAttr() == nil || !p.is.Load() {
		return p.session.Query(ctx, query)
	}
	p.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestInterruptionsOfQueuedCallsAreHandedOver: the kernel tells of the first signal of a caller only, and the process that goes on has to know
// that it is to look whether the caller is killed.
func TestInterruptionsOfQueuedCallsAreHandedOver(t *testing.T) {
	ops, dir := &patient{session: newCluster().open(), asked: make(chan struct{}, 1)}, t.TempDir()
	require.NoError(t, syscall.Chmod(filepath.Dir(dir), 0o755))
	m := mountAt(t, dir, ops, Options{Budgets: NewBudgets(Limits{CallsPerUser: 1})})
	begun, open := slowNames(ops.session)
	defer open()
	_, lines := startAs(t, 1000, dir, "python3", "-c", statMany, "slow", "1")
	eventually(t, "it is looked up", func() bool { return len(begun) == 1 })
	caller, _ := startAs(t, 1000, "/", "python3", "-Ic", "import os, signal; signal.signal(signal.SIGUSR1, lambda *_: 0); os.stat('"+dir+"/name')")
	eventually(t, "the other one waits", func() bool { return m.server.Queued() == 1 })
	require.NoError(t, caller.Process.Signal(syscall.SIGUSR1))
	eventually(t, "the kernel tells of the signal", func() bool { return m.server.QueuedInterruptions() == 1 })
	ops.is.Store(true)
	time.AfterFunc(10*time.Millisecond, open)
	h, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	require.Len(t, h.given, 2, "the call and its interruption")
	heir, err := TakeOver(h.State, h.Files, nil, ops, Options{Logger: m.logger}, func(*Mounted) error { return nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Unmount()) })
	<-ops.asked
	ops.is.Store(false)
	require.NoError(t, caller.Process.Kill())
	require.Error(t, caller.Wait())
	require.True(t, lines.Scan())
}

// TestWaitsThatAreHandedOverAreNotRefused, also if the user has room for fewer: the request for the lock would wait on in the cluster.
func TestWaitsThatAreHandedOverAreNotRefused(t *testing.T) {
	const waiters = 4
	ops, dir := newCluster().open(), t.TempDir()
	m := mountAt(t, dir, ops, Options{})
	held := openIn(t, dir, "held")
	require.NoError(t, unix.Flock(held, unix.LOCK_EX))
	got := make([]chan error, waiters)
	for i := range got {
		fd := openIn(t, dir, "held")
		waiting := waitFor(t, ops, fd)
		got[i] = make(chan error, 1)
		go func() { got[i] <- errors.Join(<-waiting, unix.Close(fd)) }()
	}
	h, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	budgets := NewBudgets(Limits{WaitsPerUser: 1})
	heir, err := TakeOver(h.State, h.Files, nil, ops, Options{Logger: m.logger, Budgets: budgets}, func(*Mounted) error { return nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, heir.Unmount()) })
	eventually(t, "all wait again", func() bool { return budgets.waits.Usage(1).Total == waiters })
	require.NoError(t, unix.Close(held))
	for _, one := range got {
		require.NoError(t, <-one)
	}
	eventually(t, "no request is left behind", func() bool {
		ops.mu.Lock()
		defer ops.mu.Unlock()
		return !ops.ns.HasAdvisoryLocks(ids.Session(ops.id))
	})
}

// TestQueuedCallsGoOnAfterAHandOverThatWasPutOff: the calls that kept it from being done have ended before the mount is served again.
func TestQueuedCallsGoOnAfterAHandOverThatWasPutOff(t *testing.T) {
	const calls, each = 20, 4
	m := mountWithBudgets(t, Limits{CallsPerUser: each})
	begun, open, done := m.queueCalls(t, calls, each)
	require.True(t, m.following.end(5*time.Second))
	_, err := m.server.Stop(10 * time.Millisecond)
	require.ErrorIs(t, err, serve.ErrBusy)
	m.serving.Wait()
	open()
	eventually(t, "these calls have ended", func() bool { return m.budgets.calls.Usage(1).Total == 0 })
	require.Len(t, begun, each)
	m.begin(nil)
	eventually(t, "the others are done", func() bool { return len(begun) == calls && m.server.Queued() == 0 })
	done()
}

// readMany reads a file in many threads, through a descriptor each.
const readMany = `
import os, sys, threading
def read():
    os.read(os.open(sys.argv[1], os.O_RDONLY), 1 << 20)
threads = [threading.Thread(target=read) for _ in range(int(sys.argv[2]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print('done', flush=True)
`

// TestReadsOfTheListOfLocksAreCalls, of which a user has few in progress, because each needs memory for a page of the list. Reads that wait
// for what is to come are waits.
func TestReadsOfTheListOfLocksAreCalls(t *testing.T) {
	const reads, each = 20, 4
	m := mountWithBudgets(t, Limits{CallsPerUser: each})
	dir, budgets := m.dir, m.budgets
	begun, gate := make(chan struct{}, 2*reads), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	m.ops.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		if query.GetListLocks() != nil {
			begun <- struct{}{}
			<-gate
		}
		return nil, false, nil
	})
	reader, events := startAs(t, 1000, dir, "head", "-n", "1", ".lockfs/events")
	t.Cleanup(func() { _ = reader.Process.Kill() })
	eventually(t, "a reader waits for an event", func() bool { return budgets.waits.Usage(1).Total == 1 })
	_, lines := startAs(t, 1000, dir, "python3", "-c", readMany, ".lockfs/locks.jsonl", fmt.Sprint(reads))
	eventually(t, "the others wait", func() bool { return m.server.Queued() == reads-each && len(begun) == each })
	require.Equal(t, uint64(1), budgets.waits.Usage(1).Total)
	open()
	require.True(t, lines.Scan())
	require.Equal(t, "done", lines.Text())
	require.NoError(t, unix.Mkdir(filepath.Join(dir, "new.lock"), 0o755))
	require.True(t, events.Scan())
}

// TestWaitsOfOneUserLeaveRoomForOthers: a user who waits for too many locks gets ENOLCK, and another one waits as before.
func TestWaitsOfOneUserLeaveRoomForOthers(t *testing.T) {
	const each = 3
	m := mountWithBudgets(t, Limits{WaitsPerUser: each})
	dir, budgets := m.dir, m.budgets
	held := openIn(t, dir, "held")
	require.NoError(t, unix.Fchmod(held, 0o666))
	require.NoError(t, unix.Flock(held, unix.LOCK_EX))
	for range each {
		startAs(t, 1000, dir, "flock", "held", "true")
	}
	eventually(t, "all wait", func() bool { return budgets.waits.Usage(1).Total == each })
	output, err := runAs(t, 1000, dir, "flock", "held", "true")
	require.Error(t, err)
	require.Contains(t, output, "No locks available")
	_, lines := startAs(t, 1001, dir, "flock", "held", "echo", "got it")
	eventually(t, "another user waits", func() bool { return budgets.waits.Usage(1).Total == each+1 })
	require.NoError(t, unix.Close(held))
	require.True(t, lines.Scan())
	require.Equal(t, "got it", lines.Text())
	eventually(t, "nothing is waited for", func() bool { return budgets.waits.Usage(1).Total == 0 })
}

// TestOpenControlFilesOfOneUserLeaveRoomForOthers, and for the user once they are closed, also after a hand-over.
func TestOpenControlFilesOfOneUserLeaveRoomForOthers(t *testing.T) {
	const each = 4
	m := mountWithBudgets(t, Limits{WaitsPerUser: each})
	dir := m.dir
	const script = `
import os, sys
kept = []
try:
    while True:
        kept.append(open('.lockfs/status'))
except OSError as error:
    print(len(kept), os.strerror(error.errno), flush=True)
sys.stdin.readline()
`
	opens := func(uid uint32) (printed string, end func()) {
		cmd := exec.Command("sh", "-c", `cd "$0" && exec python3 -c "$1"`, dir, script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		input, err := cmd.StdinPipe()
		require.NoError(t, err)
		output, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(output)
		require.True(t, lines.Scan())
		return lines.Text(), func() {
			_ = input.Close()
			_ = cmd.Wait()
		}
	}
	printed, end := opens(1000)
	require.Equal(t, "4 Too many open files", printed)
	other, endOther := opens(1001)
	require.Equal(t, "4 Too many open files", other)
	endOther()

	h, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	budgets := m.takeOver(t, h, Limits{WaitsPerUser: each}).budgets
	require.Equal(t, uint64(each), budgets.files.Usage(1).Total)
	output, err := runAs(t, 1000, dir, "cat", ".lockfs/status")
	require.Error(t, err, output)
	end()
	eventually(t, "all are closed", func() bool { return budgets.files.Usage(1).Total == 0 && budgets.bytes.Usage(1).Total == 0 })
	output, err = runAs(t, 1000, dir, "cat", ".lockfs/status")
	require.NoError(t, err, output)
}

// lockMany waits for a lock of a file in many threads, through a descriptor each. Each gets it and releases it.
const lockMany = `
import fcntl, os, sys, threading
def lock():
    fd = os.open(sys.argv[1], os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)
threads = [threading.Thread(target=lock) for _ in range(int(sys.argv[2]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print('done', flush=True)
`

// TestLockRequestsOfOneUserLeaveRoomForOthers: some wait for their turn, also while the mount is handed over and if their program is killed.
func TestLockRequestsOfOneUserLeaveRoomForOthers(t *testing.T) {
	const waiters = 2 * commandsPerUser
	m := mountWithBudgets(t, Limits{})
	held := openIn(t, m.dir, "held")
	require.NoError(t, unix.Fchmod(held, 0o666))
	require.NoError(t, unix.Flock(held, unix.LOCK_EX))
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	var asking, most atomic.Int32
	m.ops.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if op.GetTakeLock().GetWait() {
			most.Store(max(most.Load(), asking.Add(1)))
			<-gate
			asking.Add(-1)
		}
		return nil, false, nil
	})
	_, lines := startAs(t, 1000, m.dir, "python3", "-c", lockMany, "held", fmt.Sprint(waiters))
	eventually(t, "all of them wait, most of them for their turn", func() bool {
		return asking.Load() == commandsPerUser && m.budgets.waits.Usage(1).Total == waiters
	})
	killed, _ := startAs(t, 1000, m.dir, "python3", "-c", lockMany, "held", "1")
	eventually(t, "one more waits", func() bool { return m.budgets.waits.Usage(1).Total == waiters+1 })
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	require.Equal(t, int32(commandsPerUser), most.Load())

	time.AfterFunc(10*time.Millisecond, open)
	h, err := m.HandOver(5 * time.Second)
	require.NoError(t, err)
	require.Len(t, h.given, waiters)
	m.takeOver(t, h, Limits{})
	require.NoError(t, unix.Close(held))
	require.True(t, lines.Scan())
	require.Equal(t, "done", lines.Text())
	require.LessOrEqual(t, most.Load(), int32(commandsPerUser))
	eventually(t, "no request is left behind", func() bool {
		m.ops.mu.Lock()
		defer m.ops.mu.Unlock()
		return !m.ops.ns.HasAdvisoryLocks(ids.Session(m.ops.id))
	})
}
