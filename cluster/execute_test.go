package cluster

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/formats/tower"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestALeaderCountsItsOwnTermReport: a node that has given its word in a later term leads no more,
// whatever it has heard of that.
func TestALeaderCountsItsOwnTermReport(t *testing.T) {
	node := startNodes(t, 1)[0]
	term := leaderOf(t, []*Node{node}).leadership.term()
	require.True(t, node.stillLeads(term))
	require.False(t, node.stillLeads(term+1))
	node.termReports.mu.Lock()
	inTerm := node.termReports.inTerm
	node.termReports.inTerm = func() ids.Term { return term + 1 }
	node.termReports.mu.Unlock()
	require.False(t, node.stillLeads(term))
	require.False(t, node.stillLeads(term+1))
	node.termReports.mu.Lock()
	node.termReports.inTerm = inTerm
	node.termReports.mu.Unlock()
	require.True(t, node.stillLeads(term))
}

// TestALeaderHasAppliedWhatItHas and nothing that a later leader may have told of.
func TestALeaderHasAppliedWhatItHas(t *testing.T) {
	node := startNodes(t, 1)[0]
	applied := uint64(node.fsm.State().Index())
	require.NotZero(t, applied)
	require.False(t, node.hasApplied(0), "the newest is wanted")
	require.True(t, node.hasApplied(applied))
	require.False(t, node.hasApplied(applied+1_000_000))
}

// TestNoPrefetchWithACommandThatIsNotCommitted: a leader that has just lost the others tells nothing of
// what the mount asks next.
func TestNoPrefetchWithACommandThatIsNotCommitted(t *testing.T) {
	nodes := leasingNodes(t, 3)
	leader := leaderOf(t, nodes)
	awaitMayLease(t, leader)
	by := lease.Holder{Session: openTestClient(t, leader, "").Session(), Client: 1}
	create := changing()
	create.Lease, create.Client, create.Asked = uint64(by.Session), by.Client, 1
	create.Request = &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{
		Session: uint64(by.Session), Seq: 1_000_000, Caller: &storepb.Caller{}, Op: createOp("lock"),
	}}
	time.Sleep(lease.QuietPeriod)
	for _, other := range nodes {
		if other != leader {
			other.raft.Shutdown() // does not wait: the leader would notice
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	reply, err := leader.Execute(ctx, create)
	if err == nil {
		require.NotEqual(t, clusterpb.Outcome_DONE, reply.GetOutcome())
		require.Empty(t, reply.GetAlso())
	}
}

// TestACommandOfALaterTermIsNotAcknowledged by a node that was elected again between the decision to
// propose the command and its entry, and is not ready in its new term: leases of the leader in between
// may last. The retry has the result.
func TestACommandOfALaterTermIsNotAcknowledged(t *testing.T) {
	node, here, _ := leasing(t)
	create := &clusterpb.ExecuteRequest{}
	create.Request = &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{
		Session: uint64(here.Session), Seq: 1_000_000, Caller: &storepb.Caller{}, Op: createOp("lock"),
	}}
	term := node.leaseGate.term
	node.leaseGate.term = func() ids.Term { return term() + 2 }
	reply, err := node.Execute(t.Context(), create)
	require.NoError(t, err)
	require.Equal(t, clusterpb.Outcome_UNKNOWN, reply.GetOutcome())
	require.Nil(t, reply.GetResult())
	node.leaseGate.term = term
	reply, err = node.Execute(t.Context(), create)
	require.NoError(t, err)
	require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
	require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode())
}

// TestWhetherThereIsALockIsToldByWhoLeads only, and once it may be shown.
func TestWhetherThereIsALockIsToldByWhoLeads(t *testing.T) {
	node, here, _ := leasing(t)
	term := node.leadership.term()
	request := &storepb.AwaitLock{Session: uint64(here.Session), Seq: 5, Ino: 1}
	result, err := node.awaitLock(t.Context(), term, request)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_NOT_FOUND, result.GetCode())
	_, err = node.awaitLock(t.Context(), term-1, request)
	require.ErrorIs(t, err, errNoQuorum)

	asked := monotonic()
	q := node.leaseGate.beginPrefetch(at(here, 1), changing()) // so that root may be leased
	require.NotNil(t, node.leaseGate.answerPrefetch(q, new(storepb.Result), yes))
	before := node.fsm.State().Index()
	var touched sync.WaitGroup
	defer touched.Wait()
	touched.Go(func() { touchRoot(t, node) }) // which waits as well
	require.NoError(t, node.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Index() > before }))
	_, err = node.awaitLock(t.Context(), term, request)
	require.NoError(t, err)
	require.GreaterOrEqual(t, monotonic(), asked+lease.Duration, "until then a mount answers as if root had not changed")
}

// TestALeaseEndsWithItsLock: by then lockfs itself changes the name.
func TestALeaseEndsWithItsLock(t *testing.T) {
	node, here, _ := leasing(t)
	client := openTestClient(t, node, "")
	made, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("x.lock"))
	require.NoError(t, err)
	now := time.Now().UTC()
	lock := tower.Lock{
		LockVersion: tower.Version, LockName: "x", RequestID: "req_1", Actor: "a", Intent: "i", IntentVersion: "1", HostID: "h",
		PID: os.Getpid(), CreatedAt: now, LastHeartbeatAt: now, TTLSeconds: 60,
	}
	content, err := lock.Render()
	require.NoError(t, err)
	do(t, client, writeOp(made, string(content)))
	time.Sleep(lease.QuietPeriod)
	given := func(s *leaseGate) grantedLease {
		_, given, err := s.query(t.Context(), yes, getAttrOf(made.GetAttr().GetIno()), at(here, 1))
		require.NoError(t, err)
		return given
	}
	lasts := given(node.leaseGate)
	require.NotZero(t, lasts.generation)
	require.Positive(t, lasts.lasts)
	require.LessOrEqual(t, lasts.lasts, 90*time.Second)

	later := newClock(func() reading {
		now := readClocks()
		return reading{wall: now.wall + int64(lasts.lasts), mono: now.mono}
	})
	later.start(0)
	overdue := &leaseGate{table: node.leaseGate.table, fsm: node.fsm, clock: later, grants: true, pending: node.leaseGate.pending}
	require.Zero(t, given(overdue).generation)
}

// TestNoLeaseThatASuccessorCouldForget: not before all servers know of leases, nor to a session that is
// over.
func TestNoLeaseThatASuccessorCouldForget(t *testing.T) {
	give := func(node *Node, to lease.Request) (given grantedLease) {
		question := getAttrOf(namespace.RootIno)
		node.fsm.View(func(ns *namespace.Namespace) {
			a := &leasableAnswer{question, ns.Query(question), []ids.Inode{namespace.RootIno}}
			given = node.leaseGate.grant(ns, to, a, 0, monotonic())
		})
		return given
	}
	node, here, _ := leasing(t)
	require.NotZero(t, give(node, at(here, 1)).generation)
	over := here
	over.Session++
	require.Zero(t, give(node, at(over, 1)).generation)

	node = nodesThatLease(t, 1, false)[0]
	here = lease.Request{Holder: lease.Holder{Session: openTestClient(t, node, "").Session(), Client: 1}}
	require.Zero(t, give(node, at(here, 1)).generation)
}

// TestALeaderWaitsForItsOwnLeases of the term before, about which it need ask nobody.
func TestALeaderWaitsForItsOwnLeases(t *testing.T) {
	node, here, _ := leasing(t)
	l, term := node.leaderLoop(), node.leadership.term()
	_, granted := node.leaseGate.table.Grant(here, []ids.Inode{namespace.RootIno}, monotonic()+time.Hour)
	require.True(t, granted)
	now := monotonic()
	require.False(t, l.awaitLeases(term+1, now, now+2*time.Hour), "what is to be waited for is to come, and it does not lead in that term")

	node, _, _ = leasing(t)
	l, term = node.leaderLoop(), node.leadership.term()
	now = monotonic()
	require.True(t, l.awaitLeases(term+1, now, now+2*time.Hour), "there are none")
}

// TestALeaseTakesAQuorumRound, also where an answer would not: a leader that has just lost the others
// gives none.
func TestALeaseTakesAQuorumRound(t *testing.T) {
	nodes := leasingNodes(t, 3)
	leader := leaderOf(t, nodes)
	awaitMayLease(t, leader)
	by := lease.Holder{Session: openTestClient(t, leader, "").Session(), Client: 1}
	term := leader.leadership.term()
	query := getAttrOf(namespace.RootIno)
	query.Since = uint64(leader.fsm.State().Index())
	time.Sleep(lease.QuietPeriod)
	var gone sync.WaitGroup
	for _, other := range nodes {
		if other != leader {
			gone.Go(func() { _ = other.Close() })
		}
	}
	gone.Wait()
	_, given, err := leader.query(t.Context(), term, query, false, lease.Request{Holder: by, Asked: 1})
	require.ErrorIs(t, err, errNoQuorum)
	require.Zero(t, given.generation)
	_, err = leader.awaitLock(t.Context(), term, &storepb.AwaitLock{Session: uint64(by.Session), Seq: 5, Ino: 1})
	require.ErrorIs(t, err, errNoQuorum)
}

// TestOnlySmallAnswersAreLeased up to its bounds.
func TestOnlySmallAnswersAreLeased(t *testing.T) {
	read := &storepb.Query{Query: &storepb.Query_Read{}}
	list := &storepb.Query{Query: &storepb.Query_ReadDir{}}
	content := func(n int) *storepb.Result { return &storepb.Result{Content: make([]byte, n)} }
	entries := func(n int) *storepb.Result { return &storepb.Result{Entries: make([]*storepb.DirEntry, n)} }
	require.True(t, isLeased(read, content(maxLeasedContent)))
	require.False(t, isLeased(read, content(maxLeasedContent+1)))
	require.True(t, isLeased(list, entries(maxLeasedEntries)))
	require.False(t, isLeased(list, entries(maxLeasedEntries+1)))
	require.False(t, isLeased(read, &storepb.Result{Code: storepb.Code_NOT_FOUND}))
	require.True(t, isLeased(lookupOf("x"), &storepb.Result{Code: storepb.Code_NOT_FOUND}))
	require.False(t, isLeased(lookupOf("x"), &storepb.Result{Code: storepb.Code_INVALID}))
}

// TestWhoIsNotConfirmedDoesNotBeginToLead: it does not know how long it has to wait, nor what time it is.
func TestWhoIsNotConfirmedDoesNotBeginToLead(t *testing.T) {
	node := startNodes(t, 1)[0]
	term := leaderOf(t, []*Node{node}).leadership.term()
	node.leadership.readyTerm.Store(0)
	var said strings.Builder
	refused := make(chan bool, 1)
	l := node.leaderLoop()
	l.logger = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		said.Write(line)
		if strings.Contains(string(line), "not ready to lead yet") {
			select {
			case refused <- node.leadership.term() == 0:
			default:
			}
		}
		return len(line), nil
	}), nil))
	var later atomic.Bool
	later.Store(true)
	termReports := newTermReports(func() ids.Term {
		if later.Load() {
			return term + 1
		}
		return term
	}, monotonic)
	l.readIndex = newReadIndex(node.ctx, node.raft, node.members, node.leadership, node.peers, node.clock, node.space, termReports, node.instances)
	done := make(chan struct{})
	go func() { defer close(done); l.becomeReady() }()
	select {
	case notYet := <-refused:
		require.True(t, notYet)
	case <-done:
		require.Fail(t, "it leads", said.String())
	}
	later.Store(false)
	<-done
	require.Equal(t, term, node.leadership.term())
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
