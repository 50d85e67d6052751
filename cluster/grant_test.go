package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// leasingNodes are nodes that give leases, of which the first leads.
func leasingNodes(t testing.TB, n int) []*Node { return nodesThatLease(t, n, true) }

// nodesThatLease are nodes that give leases, or do not, of which the first leads.
func nodesThatLease(t testing.TB, n int, leases bool) []*Node {
	t.Helper()
	var nodes []*Node
	for i := range n {
		var join []string
		if i > 0 {
			join = []string{nodes[0].cfg.Address}
		}
		cfg := testConfig(t, "n"+string(rune('0'+i)), join...)
		cfg.Leases = leases
		nodes = append(nodes, startNode(t, cfg))
	}
	return nodes
}

// dialNode opens a client as a host without a node does.
func dialNode(t testing.TB, nodes []*Node) *session.Client {
	t.Helper()
	var servers []string
	for _, node := range nodes {
		servers = append(servers, node.cfg.Address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := session.Dial(ctx, servers, session.Config{Host: "far", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		_ = client.Close(ctx)
	})
	return client
}

func held(node *Node) int {
	mounts, _ := node.leaseGate.table.Held()
	return mounts
}

// holdName has a client ask for a name until it holds the answer.
func holdName(t testing.TB, leader *Node, client *session.Client, name string, want storepb.Code) {
	t.Helper()
	before := held(leader)
	require.Eventually(t, func() bool {
		return lookup(t, client, name) == want && held(leader) > before
	}, testWait, 50*time.Millisecond, "%s is never leased", name)
}

// holdByAll is holdName for all clients that there are.
func holdByAll(t testing.TB, leader *Node, clients []*session.Client, name string, want storepb.Code) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, client := range clients {
			if lookup(t, client, name) != want {
				return false
			}
		}
		return held(leader) == len(clients)
	}, testWait, 50*time.Millisecond, "%s is never leased", name)
}

func unlinkOp(name string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte(name)}}}
}

func TestLeasedAnswersAskNobody(t *testing.T) {
	nodes := leasingNodes(t, 3)
	counts, client := openDeaf(t, nodes[1])
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	holdByAll(t, nodes[0], []*session.Client{client}, "lock", storepb.Code_OK)
	before := counts.asked.Load()
	for began := time.Now(); time.Since(began) < 2*lease.Duration; time.Sleep(time.Millisecond) {
		require.Equal(t, storepb.Code_OK, lookup(t, client, "lock"))
	}
	require.Less(t, counts.asked.Load()-before, int64(20))
}

// TestChangesAreSeenByThoseWhoHoldLeases changes what others hold from every mount: none of them ever
// sees what was before.
func TestChangesAreSeenByThoseWhoHoldLeases(t *testing.T) {
	nodes := leasingNodes(t, 3)
	clients := []*session.Client{openTestClient(t, nodes[0], ""), openTestClient(t, nodes[1], ""), dialNode(t, nodes)}
	for _, writer := range clients {
		holdByAll(t, nodes[0], clients, "lock", storepb.Code_NOT_FOUND)
		require.Equal(t, storepb.Code_OK, create(t, writer, "lock"))
		for _, client := range clients {
			require.Equal(t, storepb.Code_OK, lookup(t, client, "lock"))
		}
		holdByAll(t, nodes[0], clients, "lock", storepb.Code_OK)
		result, err := writer.Mutate(t.Context(), &storepb.Caller{}, unlinkOp("lock"))
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
		for _, client := range clients {
			require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, client, "lock"))
		}
	}
}

var _ session.Voter = (*deafNode)(nil)

// deafNode is a voter for a client that hears nothing of what it has to drop while deaf is set, and
// counts what it asks.
type deafNode struct {
	*Node
	deaf  atomic.Bool
	asked atomic.Int64
}

// Execute is part of rpc.Node.
func (n *deafNode) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	n.asked.Add(1)
	return n.Node.Execute(ctx, req)
}

// Lease is part of rpc.Node.
func (n *deafNode) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	if n.deaf.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	reply, err := n.Node.Lease(ctx, req)
	if n.deaf.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return reply, err
}

func openDeaf(t testing.TB, node *Node) (*deafNode, *session.Client) {
	t.Helper()
	deaf := &deafNode{Node: node}
	client, err := session.Open(t.Context(), deaf, node.peers, session.Config{Host: "deaf", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		_ = client.Close(ctx)
	})
	return deaf, client
}

// TestAChangeWaitsForAMountThatDoesNotAnswer has one mount hear nothing: a change is told, and seen by
// others, only when its lease is over; the next one waits for nobody.
func TestAChangeWaitsForAMountThatDoesNotAnswer(t *testing.T) {
	nodes := leasingNodes(t, 3)
	deaf, holder := openDeaf(t, nodes[0])
	writer, reader := openTestClient(t, nodes[1], ""), dialNode(t, nodes)
	holdName(t, nodes[0], holder, "lock", storepb.Code_NOT_FOUND)
	deaf.deaf.Store(true)

	told := make(chan error, 1)
	go func() {
		_, err := writer.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
		told <- err
	}()
	seen := make(chan storepb.Code, 1)
	go func() {
		code := storepb.Code_NOT_FOUND
		for code != storepb.Code_OK {
			code = lookup(t, reader, "lock")
		}
		seen <- code
	}()
	var isTold, isSeen bool
	for !isTold || !isSeen {
		before := isTold || isSeen
		if code := lookup(t, holder, "lock"); before {
			require.Equal(t, storepb.Code_OK, code, "a mount does not see what others were told (told %t, seen %t)", isTold, isSeen)
		}
		select {
		case err := <-told:
			require.NoError(t, err)
			isTold = true
		case <-seen:
			isSeen = true
		default:
		}
	}
	others := 0
	require.Eventually(t, func() bool { // else each one would take a whole lease
		began := time.Now()
		others++
		require.Equal(t, storepb.Code_OK, create(t, writer, fmt.Sprint("other", others)))
		return time.Since(began) < lease.Duration/2
	}, testWait, time.Millisecond)
}

// TestTheNumberOfAChangeIsToldOnceTheChangeMayBeShown: programs that learn of it list locks again, from leases too.
func TestTheNumberOfAChangeIsToldOnceTheChangeMayBeShown(t *testing.T) {
	leader := leasingNodes(t, 1)[0]
	deaf, holder := openDeaf(t, leader)
	writer := openTestClient(t, leader, "")
	holdName(t, leader, holder, "lock", storepb.Code_NOT_FOUND)
	deaf.deaf.Store(true)
	told := make(chan error, 1)
	go func() {
		_, err := writer.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
		told <- err
	}()
	require.Eventually(t, func() bool {
		result, err := leader.fsm.Query(lookupOf("lock"))
		return err == nil && result.GetCode() == storepb.Code_OK
	}, testWait, time.Millisecond)
	applied := uint64(leader.fsm.State().Index())
	reply, err := leader.EndedWaits(t.Context(), &clusterpb.EndedWaitsRequest{Session: uint64(writer.Session())})
	require.NoError(t, err)
	require.GreaterOrEqual(t, reply.GetIndex(), applied)
	require.Equal(t, storepb.Code_OK, lookup(t, holder, "lock"))
	require.NoError(t, <-told)
}

// awaitMayLease waits until a node knows that there may be leases.
func awaitMayLease(t testing.TB, node *Node) {
	t.Helper()
	require.NoError(t, node.fsm.WaitFor(t.Context(), (*namespace.Namespace).MayLease))
}

// TestOnlyTheLeaderAnswersFromItsState asks for any state that is new enough: a follower does not know
// which changes wait for somebody.
func TestOnlyTheLeaderAnswersFromItsState(t *testing.T) {
	nodes := leasingNodes(t, 2)
	for i, node := range nodes {
		awaitMayLease(t, node)
		reply := ask(t, node, rpc.Node.Execute, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{
			Query: &storepb.Query{Since: 1, Query: statFs.GetQuery().GetQuery()},
		}})
		require.Equal(t, i != 0, reply.GetOutcome() == clusterpb.Outcome_NOT_LEADER, "node %d: %v", i, reply)
	}
}

// awaitReportsCount waits until a new leader goes by what voters say: it waits for a whole lease after a
// change of the configuration.
func awaitReportsCount(t testing.TB, nodes []*Node) {
	t.Helper()
	for _, node := range nodes {
		require.Eventually(t, func() bool { return node.termReports.leaseExpiry(0, -time.Hour) < 0 }, testWait, 10*time.Millisecond)
	}
}

// TestAllKnowThatTheConfigurationHasChanged requires of each node that it would wait for a whole lease
// then.
func TestAllKnowThatTheConfigurationHasChanged(t *testing.T) {
	nodes := leasingNodes(t, 3)
	awaitReportsCount(t, nodes)
	var known sync.WaitGroup
	for i, node := range nodes {
		known.Go(func() {
			assert.Eventually(t, func() bool { return node.termReports.leaseExpiry(0, -time.Hour) == lease.Duration }, testWait, time.Millisecond, "node %d", i)
		})
	}
	id := raft.ServerID("another")
	require.Eventually(t, func() bool {
		return leaderOf(t, nodes).raft.AddNonvoter(id, "127.0.0.1:1", 0, testWait).Error() == nil
	}, testWait, time.Millisecond)
	known.Wait()
}

// TestANewLeaderWaitsForLeases deposes a leader whose mount does not know of that, by somebody else's
// will and by its own. The leader is asked for how long its leases last; in the end it has none.
func TestANewLeaderWaitsForLeases(t *testing.T) {
	nodes := leasingNodes(t, 3)
	awaitMayLease(t, nodes[1])
	awaitReportsCount(t, nodes)
	deaf, holder := openDeaf(t, nodes[0])
	writer := dialNode(t, nodes[1:])
	for i, depose := range []func() error{
		func() error { return nodes[0].raft.LeadershipTransfer().Error() },
		func() error {
			_, err := nodes[0].TransferLeadership(t.Context())
			return err
		},
	} {
		name := fmt.Sprint("lock", i)
		lead(t, nodes[0], nodes)
		holdName(t, nodes[0], holder, name, storepb.Code_NOT_FOUND)
		deaf.deaf.Store(true)
		require.NoError(t, depose())
		told := make(chan error, 1)
		go func() {
			_, err := writer.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
			told <- err
		}()
		for isTold := false; !isTold; {
			select {
			case err := <-told:
				require.NoError(t, err)
				isTold = true
			default:
			}
			code := lookup(t, holder, name)
			if isTold {
				require.Equal(t, storepb.Code_OK, code, "a mount does not see what others were told")
			}
		}
		deaf.deaf.Store(false)
	}
}

// lead waits until a node leads, for which the others hand over to it.
func lead(t testing.TB, node *Node, nodes []*Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, other := range nodes {
			if other != node && other.leadership.term() != 0 {
				_ = other.raft.LeadershipTransferToServer(raft.ServerID(node.dir.ID), raft.ServerAddress(node.cfg.Address)).Error()
			}
		}
		return node.leadership.term() != 0
	}, testWait, 10*time.Millisecond)
}

// TestALeadershipTransferIsTakenBack by a node that has nobody to lead in its place, and counts for its
// next start if it is not.
func TestALeadershipTransferIsTakenBack(t *testing.T) {
	cfg := testConfig(t, "n0")
	cfg.SessionTTL = testWait // the mount's, while there is no server
	node := startNode(t, cfg)
	t.Cleanup(func() { _ = node.Close() }) // the second, after the mounts have said farewell
	mount, other := dialNode(t, []*Node{node}), dialNode(t, []*Node{node})
	holdName(t, node, mount, "lock", storepb.Code_NOT_FOUND)
	led, err := node.TransferLeadership(t.Context())
	require.NoError(t, err)
	require.Equal(t, node.leadership.term(), led)
	node.leaseGate.table.Expire(monotonic())
	require.Zero(t, held(node), "nothing lasts any more")
	require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, mount, "lock"), "it answers")
	require.Equal(t, storepb.Code_OK, create(t, other, "other"))
	node.ResumeLeadership(led)
	holdName(t, node, mount, "lock", storepb.Code_NOT_FOUND)

	cfg.ExpiredLeaseTerm, err = node.TransferLeadership(t.Context())
	require.NoError(t, err)
	require.Equal(t, led, cfg.ExpiredLeaseTerm)
	require.NoError(t, node.Close())
	node, err = Open(cfg)
	require.NoError(t, err)
	require.NoError(t, node.WaitReady(t.Context()))
	require.Equal(t, led+1, node.leadership.term())
	require.Equal(t, storepb.Code_OK, create(t, other, "lock"))
	require.Equal(t, storepb.Code_OK, lookup(t, mount, "lock"))
}

// TestLeadershipIsNotTransferredForNothing while somebody else changes the cluster, in the name of
// another cluster, or if leases last for too long.
func TestLeadershipIsNotTransferredForNothing(t *testing.T) {
	nodes := leasingNodes(t, 2)
	awaitMayLease(t, nodes[0])
	lead(t, nodes[0], nodes)
	term := nodes[0].leadership.term()
	leads := func(name string) {
		t.Helper()
		require.Equal(t, term, nodes[0].leadership.term())
		nodes[0].leaseGate.table.Expire(monotonic())
		holdName(t, nodes[0], dialNode(t, nodes[:1]), name, storepb.Code_NOT_FOUND)
	}
	leads("at first")
	require.True(t, nodes[0].proposer.exclusive.Lock(t.Context()))
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := nodes[0].TransferLeadership(ended)
	require.ErrorContains(t, err, "is under way")
	nodes[0].proposer.exclusive.Unlock()
	leads("during a change")

	for _, cluster := range []string{"", "another"} {
		reply, err := nodes[0].Probe(t.Context(), &clusterpb.ProbeRequest{Elected: uint64(term) + 1, Cluster: cluster})
		require.NoError(t, err)
		require.False(t, reply.GetResigned(), "cluster %q", cluster)
	}
	leads("asked by others")

	soon, end := context.WithTimeout(t.Context(), time.Millisecond) // before leases are over
	defer end()
	_, err = nodes[0].TransferLeadership(soon)
	require.ErrorContains(t, err, "leases are not over")
	leads("put off")
}

// TestLeasesAreReleased by who has no use for them any more, and by who leaves.
func TestLeasesAreReleased(t *testing.T) {
	nodes := leasingNodes(t, 1)
	client := openTestClient(t, nodes[0], "")
	holdName(t, nodes[0], client, "lock", storepb.Code_NOT_FOUND)
	require.Eventually(t, func() bool { return held(nodes[0]) == 0 }, testWait, 10*time.Millisecond, "nobody uses it")
	holdName(t, nodes[0], client, "lock", storepb.Code_NOT_FOUND)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, client.Close(ctx))
	require.Zero(t, held(nodes[0]), "it has left")
}

// TestACallOfNoSuchLeaseIsAnswered, as one is that comes late.
func TestACallOfNoSuchLeaseIsAnswered(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	reply := ask(t, node, rpc.Node.Lease, &clusterpb.LeaseRequest{Session: 7, Generation: 1, Dropped: 5})
	require.False(t, reply.GetKnown())
	require.False(t, reply.GetExtended())
	reply = ask(t, node, rpc.Node.Lease, &clusterpb.LeaseRequest{Session: 7, Generation: 1, Release: true})
	require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome())
}

// TestASessionIsResumedWithoutLeases hands a session over to a client of another process.
func TestASessionIsResumedWithoutLeases(t *testing.T) {
	node := leasingNodes(t, 1)[0]
	open := func(cfg session.Config) *session.Client {
		cfg.Host, cfg.OpTimeout, cfg.Logger = "h", testWait, quietLogger()
		client, err := node.OpenClient(t.Context(), cfg)
		require.NoError(t, err)
		return client
	}
	first := open(session.Config{SessionFile: filepath.Join(t.TempDir(), "mount.session")})
	holdName(t, node, first, "lock", storepb.Code_NOT_FOUND)
	file, err := first.HandOver(t.Context())
	require.NoError(t, err)
	require.Zero(t, held(node))

	second := open(session.Config{Inherited: file})
	require.Equal(t, first.Session(), second.Session())
	holdName(t, node, second, "lock", storepb.Code_NOT_FOUND)
	for began := time.Now(); time.Since(began) < 2*lease.Duration; time.Sleep(time.Millisecond) {
		require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, second, "lock"))
	}
	require.NotZero(t, held(node), "it has its lease extended")
	other := open(session.Config{})
	require.Equal(t, storepb.Code_OK, create(t, other, "lock"))
	require.Equal(t, storepb.Code_OK, lookup(t, second, "lock"))
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, other.Close(ctx))
	require.NoError(t, second.Close(ctx))
	require.Zero(t, held(node))
}

// TestAFileThatOthersChangeIsLeasedToAFrequentReader does not wait until it is quiet, but for a moment,
// and only for who has asked since the change.
func TestAFileThatOthersChangeIsLeasedToAFrequentReader(t *testing.T) {
	node, here, there := leasing(t)
	root := []ids.Inode{namespace.RootIno}
	unchanged := func(of lease.Request, after time.Duration) (unchanged time.Duration) {
		node.fsm.View(func(ns *namespace.Namespace) {
			unchanged = node.leaseGate.quietPeriod(ns, of.Holder, root, ns.ChangedAt(namespace.RootIno)+int64(after))
		})
		return unchanged
	}
	touchRoot(t, node)
	require.Equal(t, lease.QuietPeriod, unchanged(here, 0))
	require.Eventually(t, func() bool { return unchanged(here, 0) == lease.MinAge }, testWait, time.Microsecond)
	require.Equal(t, lease.QuietPeriod, unchanged(there, 0), "another one has not")
	touchRoot(t, node)
	require.Equal(t, lease.QuietPeriod, unchanged(here, 0), "it has changed since")
	require.LessOrEqual(t, unchanged(there, lease.QuietPeriod), lease.QuietPeriod)

	leasedAfter := func() time.Duration {
		touchRoot(t, node)
		for generation := uint64(0); generation == 0; {
			_, given, err := node.leaseGate.query(t.Context(), yes, getAttrOf(namespace.RootIno), here)
			require.NoError(t, err)
			generation = given.generation
		}
		node.leaseGate.table.Expire(time.Hour) // or the next change would wait for it
		var changed int64
		node.fsm.View(func(ns *namespace.Namespace) { changed = ns.ChangedAt(namespace.RootIno) })
		return time.Duration(node.clock.Now() - changed)
	}
	require.Eventually(t, func() bool { return leasedAfter() < lease.QuietPeriod }, testWait, time.Microsecond)
}
