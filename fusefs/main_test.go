package fusefs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// childEnv tells a process that a test started from its own program what to do instead of testing.
const childEnv = "LOCKFS_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(runChild(role, os.Args[1]))
	}
	os.Exit(m.Run())
}

// cluster is a namespace without a log: what a cluster does, in one process.
type cluster struct {
	mu       sync.Mutex
	ns       *namespace.Namespace
	index    uint64
	sessions uint64
	changed  chan struct{} // closed with each command
	releases map[ids.Session]func(ids.Inode, storepb.LockKind, ids.Owner) bool
}

func newCluster() *cluster {
	return &cluster{
		ns: namespace.New(), changed: make(chan struct{}),
		releases: make(map[ids.Session]func(ids.Inode, storepb.LockKind, ids.Owner) bool),
	}
}

func (c *cluster) apply(cmd *storepb.Command) *storepb.Result {
	c.index++
	cmd.Time = time.Now().UnixNano()
	defer func() {
		close(c.changed)
		c.changed = make(chan struct{})
	}()
	return c.ns.Apply(ids.Index(c.index), cmd)
}

// session is the Operator of one mount. before, if set, sees each operation first and may answer it.
type session struct {
	*cluster
	id, seq uint64
	host    string

	hook   sync.Mutex
	before func(op *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error)
	pins   int // inodes that were pinned, less those that were unpinned
}

func (c *cluster) open() *session { return c.openOn("host") }

func (c *cluster) openOn(host string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions++
	s := &session{cluster: c, id: c.sessions, host: host}
	open := &storepb.OpenSession{Host: host, BootId: "boot"}
	c.apply(&storepb.Command{Session: s.id, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: open}}})
	return s
}

func (s *session) intercept(do func(*storepb.Op, *storepb.Query) (*storepb.Result, bool, error)) {
	s.hook.Lock()
	defer s.hook.Unlock()
	s.before = do
}

func (s *session) ask(op *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
	s.hook.Lock()
	before := s.before
	s.hook.Unlock()
	if before == nil {
		return nil, false, nil
	}
	return before(op, query)
}

func (s *session) Mutate(_ context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	if result, answered, err := s.ask(op, nil); answered {
		return result, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do(caller, op), nil
}

// do is called with the cluster's mutex held.
func (s *session) do(caller *storepb.Caller, op *storepb.Op) *storepb.Result {
	s.seq++
	caller.Host = s.host
	describeName(op)
	result := s.apply(&storepb.Command{Session: s.id, Seq: s.seq, Acked: s.seq - 1, Caller: caller, Op: op})
	kept := max(op.GetUnlink().GetPin(), op.GetRename().GetPin())
	if op.GetPin() != nil || kept != 0 && result.GetRemovedIno() == kept {
		s.pins++
	}
	if op.GetUnpin() != nil {
		s.pins--
	}
	return result
}

// describeName has each name say lock, as most tests are about locks; a client of a cluster looks at it.
func describeName(op *storepb.Op) {
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		op.Create.Says = storepb.NameSays_SAYS_LOCK
	case *storepb.Op_Link:
		op.Link.Says = storepb.NameSays_SAYS_LOCK
	case *storepb.Op_Rename:
		op.Rename.Says = storepb.NameSays_SAYS_LOCK
	}
}

func (s *session) Create(
	ctx context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	result, err := s.Mutate(ctx, caller, op)
	if err == nil && result.GetCode() == storepb.Code_OK {
		answer(result)
	}
	return result, err
}

func (s *session) GoesOn(uint32) {}

// AwaitRelease asks each mount.
func (s *session) AwaitRelease(_ context.Context, _ *storepb.TakeLock, inTheWay *storepb.AdvisoryLock) bool {
	s.mu.Lock()
	released := s.releases[ids.Session(inTheWay.GetSession())]
	s.mu.Unlock()
	return released != nil && released(ids.Inode(inTheWay.GetIno()), inTheWay.GetKind(), ids.Owner(inTheWay.GetOwner()))
}

// AnswerReleases makes the mount one that is asked.
func (s *session) AnswerReleases(ctx context.Context, released func(ids.Inode, storepb.LockKind, ids.Owner) bool) {
	s.mu.Lock()
	s.releases[ids.Session(s.id)] = released
	s.mu.Unlock()
	<-ctx.Done()
}

// FollowRemovals is tested with the built program.
func (s *session) FollowRemovals(ctx context.Context, _ func(namespace.Removal)) {
	<-ctx.Done()
}

func (s *session) Session() ids.Session { return ids.Session(s.id) }

func (s *session) RequestLock(caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, *storepb.AwaitLock, error) {
	op.Session = s.id
	command := &storepb.Op{Op: &storepb.Op_TakeLock{TakeLock: op}}
	if result, answered, err := s.ask(command, nil); answered {
		return result, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result := s.do(caller, command)
	if result.GetCode() != storepb.Code_WAITING {
		return result, nil, nil
	}
	return result, &storepb.AwaitLock{
		Session: s.id, Seq: s.seq, Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(),
		Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
	}, nil
}

// AwaitLock asks again after each change.
func (s *session) AwaitLock(ctx context.Context, interrupted <-chan struct{}, request *storepb.AwaitLock) (*storepb.Result, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		result, err := s.Query(ctx, &storepb.Query{Query: &storepb.Query_AwaitLock{AwaitLock: request}})
		if err != nil || result.GetCode() != storepb.Code_WAITING {
			return result, err
		}
		select {
		case <-changed:
		case <-interrupted:
			return result, nil
		case <-ctx.Done():
			return result, nil
		}
	}
}

func (s *session) InterruptLock(caller *storepb.Caller, request *storepb.AwaitLock) (*storepb.Result, error) {
	result, err := s.Mutate(context.Background(), caller, &storepb.Op{Op: &storepb.Op_InterruptLock{InterruptLock: &storepb.InterruptLock{
		Seq: request.Seq, Ino: request.Ino, Kind: request.Kind, Owner: request.Owner,
		Type: request.Type, Start: request.Start, End: request.End,
	}}})
	if err == nil && result.GetCode() != storepb.Code_OK {
		result = &storepb.Result{Code: storepb.Code_CANCELLED}
	}
	return result, err
}

func (s *session) Status() *storepb.MountStatus {
	return &storepb.MountStatus{
		Host: s.host, Leader: "leader", Session: 1, ClockOffset: -1_500_000, ClusterTime: time.Now().UnixNano(),
	}
}

func (s *session) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if result, answered, err := s.ask(nil, query); answered {
		return result, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result := s.ns.Query(query)
	result.Index = s.index
	return result, nil
}

// NameChanged tells of each command.
func (s *session) NameChanged(_ *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func()) {
	_, changed, end = s.StateAfter(since)
	return changed, end
}

// EventsAfter tells of each command. Meanwhile time passes, as with a leader.
func (s *session) EventsAfter(number uint64) (there <-chan struct{}, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ns.LastEvent() > number {
		return alreadyEnded, func() {}
	}
	ctx, end := context.WithCancel(context.Background())
	go func() {
		select {
		case <-time.After(100 * time.Millisecond):
			s.mu.Lock()
			defer s.mu.Unlock()
			s.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		case <-ctx.Done():
		}
	}()
	return s.changed, end
}

func (s *session) StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known = ids.Index(s.index); known > index {
		return known, alreadyEnded, func() {}
	}
	return known, s.changed, func() {}
}

// alreadyEnded is the channel of a wait that has ended.
var alreadyEnded = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (s *session) pinned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins
}

// mountFor mounts a new session of the cluster until the test ends, and then insists that it is gone.
func mountFor(t testing.TB, c *cluster) (dir string, s *session) {
	t.Helper()
	s = c.open()
	dir = t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755), "for other users to get to the mount")
	mountAt(t, dir, s, Options{})
	return dir, s
}

func mountAt(t testing.TB, dir string, ops Operator, opts Options) *Mounted {
	t.Helper()
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	m, err := Mount(dir, ops, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, m.Unmount())
		m.Wait()
		assert.NotContains(t, mountTable(t), " "+m.dir+" ", "the mount is still there")
	})
	// So that Go may open files of the mount in the process that serves it.
	hack, err := unix.Open(filepath.Join(dir, ".go-fuse-epoll-hack"), unix.O_RDONLY, 0)
	require.NoError(t, err)
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(hack), Events: unix.POLLIN}}, 0)
	require.NoError(t, errors.Join(err, unix.Close(hack)))
	return m
}

func mountTable(t testing.TB) string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return string(table)
}

func writeFile(t testing.TB, dir, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

func openFile(t testing.TB, path string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flags, 0o644)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func lstat(t testing.TB, path string) *syscall.Stat_t {
	t.Helper()
	var st syscall.Stat_t
	require.NoError(t, syscall.Lstat(path, &st))
	return &st
}

// runAs runs a program in dir, as a user, and answers what it printed. The program's process itself goes to
// dir: were it born there, this process would stand still, for the birth, in a mount that it serves.
func runAs(t testing.TB, uid uint32, dir, program string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `cd "$0" && exec "$@"`, dir, program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	printed, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(printed)), err
}

func shell(t testing.TB, dir, script string) string {
	t.Helper()
	output, err := runAs(t, 0, dir, "sh", "-c", script)
	require.NoError(t, err, "sh -c %q: %s", script, output)
	return output
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 5*time.Second, 5*time.Millisecond, what)
}
