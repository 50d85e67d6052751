package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// testWait is far beyond what anything here takes on a busy machine.
const testWait = 30 * time.Second

// ask asks a node itself, which always answers.
func ask[Request, Reply any](t testing.TB, node *Node, method func(rpc.Node, context.Context, Request) (Reply, error), req Request) Reply {
	t.Helper()
	reply, err := method(node, t.Context(), req)
	require.NoError(t, err)
	return reply
}

func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func testConfig(t testing.TB, name string, join ...string) Config {
	return Config{
		Name: name, DataDir: filepath.Join(t.TempDir(), name), Address: loopback.Free(t), Insecure: true,
		Bootstrap: len(join) == 0, Join: join, Logger: quietLogger(), SessionTTL: 3 * time.Second, Leases: os.Getenv("LOCKFS_TEST_LEASES") != "off",
	}
}

// startNode runs a node until the test ends, and waits until it is ready.
func startNode(t testing.TB, cfg Config) *Node {
	t.Helper()
	node, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, node.WaitReady(ctx))
	return node
}

// startNodes runs a cluster of n nodes; the first has bootstrapped it.
func startNodes(t testing.TB, n int) []*Node {
	t.Helper()
	nodes := []*Node{startNode(t, testConfig(t, "n0"))}
	for i := 1; i < n; i++ {
		nodes = append(nodes, startNode(t, testConfig(t, fmt.Sprintf("n%d", i), nodes[0].cfg.Address)))
	}
	return nodes
}

func openTestClient(t testing.TB, node *Node, file string) *session.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := node.OpenClient(ctx, session.Config{Host: "h", OpTimeout: testWait, SessionFile: file, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	})
	return client
}

// takeSnapshot does not mind that raft has just taken one by itself.
func takeSnapshot(t testing.TB, node *Node) {
	t.Helper()
	if err := node.raft.Snapshot().Error(); err != nil {
		require.ErrorIs(t, err, raft.ErrNothingNewToSnapshot)
	}
}

func createOp(name string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: namespace.RootIno, Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
	}}}
}

func create(t testing.TB, client *session.Client, name string) storepb.Code {
	t.Helper()
	result, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
	require.NoError(t, err)
	return result.GetCode()
}

func lookup(t testing.TB, client *session.Client, name string) storepb.Code {
	t.Helper()
	result, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte(name)},
	}})
	require.NoError(t, err)
	return result.GetCode()
}

func TestClusterSeesFromEveryNodeWhatOneDid(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	clients := make([]*session.Client, len(nodes))
	for i, node := range nodes {
		clients[i] = openTestClient(t, node, "")
	}
	for round := range 20 {
		name := fmt.Sprintf("lock%d", round)
		require.Equal(t, storepb.Code_OK, create(t, clients[round%3], name))
		for i, client := range clients {
			require.Equal(t, storepb.Code_OK, lookup(t, client, name), "seen from node %d", i)
			require.Equal(t, storepb.Code_EXISTS, create(t, client, name), "from node %d", i)
		}
	}
}

func TestClusterSurvivesTheLeader(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	client := openTestClient(t, nodes[1], "")
	require.Equal(t, storepb.Code_OK, create(t, client, "before"))
	require.NoError(t, nodes[0].Close())
	require.Equal(t, storepb.Code_OK, create(t, client, "after"))
	require.Equal(t, storepb.Code_OK, lookup(t, client, "before"))
	require.Equal(t, storepb.Code_EXISTS, create(t, client, "before"))
}

func TestClusterExactlyOneOfManyCreations(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	var mu sync.Mutex
	made := make(map[string]int)
	var workers sync.WaitGroup
	for i := range 12 {
		client := openTestClient(t, nodes[i%3], "")
		workers.Go(func() {
			for round := range 20 {
				name := fmt.Sprintf("lock%d", round)
				result, err := client.Mutate(context.Background(), &storepb.Caller{}, createOp(name))
				if err == nil && result.GetCode() == storepb.Code_OK {
					mu.Lock()
					made[name]++
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	require.Len(t, made, 20)
	for name, times := range made {
		require.Equal(t, 1, times, name)
	}
}

func TestClientWithoutQuorumTimesOutAndIsSettledLater(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := nodes[0].OpenClient(ctx, session.Config{Host: "h", OpTimeout: 3 * time.Second, Logger: quietLogger()})
	require.NoError(t, err)
	cfg := nodes[1].cfg
	require.NoError(t, nodes[1].Close())

	_, err = client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = client.Query(t.Context(), statFs.GetQuery())
	require.ErrorIs(t, err, context.DeadlineExceeded)

	cfg.Metrics = nil
	startNode(t, cfg)
	require.Eventually(t, func() bool { _, err := client.Query(t.Context(), statFs.GetQuery()); return err == nil }, testWait, time.Millisecond)
	var made *storepb.Result
	require.Eventually(t, func() bool { // it fails at once until what was given up is settled
		made, err = client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
		return err == nil
	}, testWait, time.Millisecond)
	require.Equal(t, storepb.Code_OK, made.GetCode(), "a creation that failed left its name")
	require.NoError(t, client.Close(ctx))
}

// TestLockOfUnknownOutcomeGoes: nobody was told of it, whether it was taken at once or waited for.
func TestLockOfUnknownOutcomeGoes(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := nodes[0].OpenClient(ctx, session.Config{Host: "h", OpTimeout: 5 * time.Second, Logger: quietLogger()})
	require.NoError(t, err)
	made, err := client.Mutate(ctx, &storepb.Caller{}, createOp("file"))
	require.NoError(t, err)
	lock := func(ctx context.Context, owner uint64) error {
		_, err := client.Lock(ctx, &storepb.Caller{}, &storepb.TakeLock{
			Ino: made.GetAttr().GetIno(), Owner: owner, Type: storepb.LockType_EXCLUSIVE, Wait: true,
		})
		return err
	}
	require.NoError(t, lock(ctx, 1))
	waits, interrupt := context.WithCancel(ctx)
	interrupted := make(chan error, 1)
	go func() { interrupted <- lock(waits, 2) }()
	locks := func() []*storepb.AdvisoryLock {
		list := &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Viewer: &storepb.Viewer{}}}
		result, err := nodes[0].fsm.Query(&storepb.Query{Query: list})
		require.NoError(t, err)
		return result.GetAdvisoryLocks()
	}
	require.Eventually(t, func() bool { return len(locks()) == 2 }, testWait, time.Millisecond)

	cfg := nodes[1].cfg
	require.NoError(t, nodes[1].Close())
	interrupt()
	require.NotErrorIs(t, <-interrupted, session.ErrInterrupted)
	require.ErrorIs(t, lock(ctx, 3), context.DeadlineExceeded)

	cfg.Metrics = nil
	startNode(t, cfg)
	require.Eventually(t, func() bool { return len(locks()) == 1 }, testWait, time.Millisecond)
	require.EqualValues(t, 1, locks()[0].GetOwner())
	require.NoError(t, client.Close(ctx))
}

func TestClientGoesOnAfterItsSessionEnded(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	client := openTestClient(t, node, "")
	id := client.Session()
	var active uint64
	for _, record := range node.sessions.live() {
		active = record.GetActive()
	}
	end := &storepb.EndSession{Id: uint64(id), IfActive: active}
	result, err := node.proposer.propose(t.Context(), &storepb.Op{Op: &storepb.Op_EndSession{EndSession: end}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())

	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.NotEqual(t, id, client.Session())
}

func TestMembersJoinListAndLeave(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	twin := testConfig(t, "n1", nodes[0].cfg.Address)
	node, err := Open(twin)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.ErrorContains(t, node.WaitReady(t.Context()), "n1")

	reply := nodes[0].remover.removeByName(t.Context(), &clusterpb.RemoveRequest{Name: "nobody"})
	require.Equal(t, storepb.Code_NOT_FOUND, reply.GetResult().GetCode())
	reply = nodes[1].remover.removeByName(t.Context(), &clusterpb.RemoveRequest{Name: "n2"})
	require.Equal(t, clusterpb.Outcome_NOT_LEADER, reply.GetOutcome())
	require.Equal(t, nodes[0].cfg.Address, reply.GetLeaderAddress())
	reply = nodes[0].remover.removeByName(t.Context(), &clusterpb.RemoveRequest{Name: "n2"})
	require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode())
	require.Len(t, nodes[0].members.all(), 2)
	select {
	case err := <-nodes[2].Failed():
		require.ErrorIs(t, err, errRemoved)
	case <-time.After(testWait):
		t.Fatal("a node that was removed did not notice")
	}
}

func TestNodeRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "a")
	node := startNode(t, cfg)
	_, err := Open(cfg)
	require.ErrorContains(t, err, "in use by another process")
	require.NoError(t, node.Close())

	other := cfg
	other.Name = "b"
	_, err = Open(other)
	require.ErrorContains(t, err, `belongs to node "a"`)
	alone := cfg
	alone.Address, alone.Advertise = "", ""
	_, err = Open(alone)
	require.ErrorContains(t, err, "cannot change")
	aimless := testConfig(t, "c")
	aimless.Bootstrap = false
	_, err = Open(aimless)
	require.ErrorContains(t, err, "lockfs server init")
	require.NoDirExists(t, aimless.DataDir, "nothing is made where no cluster is to be made")
	anywhere := testConfig(t, "d")
	anywhere.Address = "0.0.0.0:7420"
	_, err = Open(anywhere)
	require.ErrorContains(t, err, "other nodes reach")
}

func TestNodeAnswersNonsenseWithAnError(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	for what, req := range map[string]*clusterpb.ExecuteRequest{
		"nothing":           {},
		"an empty command":  {Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{}}},
		"no operation":      {Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{Session: 1}}},
		"the leader's own":  {Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{Session: 1, Op: setMember(node.members.own())}}},
		"an empty query":    {Request: &clusterpb.ExecuteRequest_Query{}},
		"an unknown one":    {Request: &clusterpb.ExecuteRequest_Query{Query: &storepb.Query{}}},
		"no such session":   {Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{Session: 5, Seq: 1, Op: createOp("x")}}},
		"a name of nothing": {Request: &clusterpb.ExecuteRequest_Query{Query: &storepb.Query{Query: &storepb.Query_Lookup{}}}},
	} {
		reply := ask(t, node, rpc.Node.Execute, req)
		require.Equal(t, clusterpb.Outcome_DONE, reply.GetOutcome(), what)
		require.NotEqual(t, storepb.Code_OK, reply.GetResult().GetCode(), what)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]clusterpb.Outcome{
		nil:                    clusterpb.Outcome_DONE,
		raftstore.ErrNotLeader: clusterpb.Outcome_NOT_LEADER,
		raftstore.ErrNotDone:   clusterpb.Outcome_NOT_DONE,
		raftstore.ErrUnknown:   clusterpb.Outcome_UNKNOWN,
		errors.New("else"):     clusterpb.Outcome_UNKNOWN,
	} {
		require.Equal(t, want, outcomeOf(err), "%v", err)
	}
}

// TestClientAcknowledgesOnlyWhatIsStruckOff looks from where a result is on its way: should the process
// be killed here, a successor finds the call in the journal, and the cluster must still know how to take
// it back.
func TestClientAcknowledgesOnlyWhatIsStruckOff(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	client := openTestClient(t, node, "")
	var acked []uint64
	_, err := client.Create(t.Context(), &storepb.Caller{}, createOp("lock"), func(*storepb.Result) []byte {
		require.Equal(t, storepb.Code_OK, create(t, client, "other"))
		for _, record := range node.sessions.live() {
			acked = append(acked, record.GetAcked())
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []uint64{0}, acked, "numbers acknowledged by another call")
}
