package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// silentTimeout is the OpTimeout of clients that are to notice a silence.
const silentTimeout = 3 * time.Second

func openImpatientClient(t *testing.T, node *Node) *session.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := node.OpenClient(ctx, session.Config{Host: "h", OpTimeout: silentTimeout, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	})
	return client
}

func queryStatFs(ctx context.Context, c *session.Client) error {
	_, err := c.Query(ctx, statFs.GetQuery())
	return err
}

// awaitCommands waits until commands are done again. That a query is answered is no sign of it.
func awaitCommands(t *testing.T, client *session.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("answered"))
		return err == nil
	}, testWait, time.Millisecond)
}

// TestCallsFailAtOnceWhileTheClusterIsSilent takes the majority away and gives it back.
func TestCallsFailAtOnceWhileTheClusterIsSilent(t *testing.T) {
	nodes := startNodes(t, 2)
	client := openImpatientClient(t, nodes[0])
	flock := takeFlock(t, client, "lock", 1)
	cfg := nodes[1].cfg
	require.NoError(t, nodes[1].Close())

	began := time.Now()
	_, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("first"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, time.Since(began), silentTimeout, "it has its whole time")

	began = time.Now()
	for range 10 {
		_, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("other"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, queryStatFs(t.Context(), client), context.DeadlineExceeded)
		_, err = client.Lock(t.Context(), &storepb.Caller{}, flock)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		result, err := client.TakeLock(t.Context(), &storepb.Caller{}, flock)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, storepb.Code_CANCELLED, result.GetCode(), "it was never asked for")
	}
	require.Less(t, time.Since(began), silentTimeout, "forty calls")

	cfg.Metrics = nil
	startNode(t, cfg)
	awaitCommands(t, client)
	require.Equal(t, storepb.Code_OK, create(t, client, "first"), "the call that failed left its name")
	require.Equal(t, storepb.Code_OK, create(t, client, "other"))
	list := &storepb.ListAdvisoryLocks{Ino: flock.GetIno(), Viewer: &storepb.Viewer{}}
	result, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: list}})
	require.NoError(t, err)
	require.Len(t, result.GetAdvisoryLocks(), 1, "whose owner asked again in vain")
}

// TestAWaitForALockOutlastsASilence has a request wait in the queue, and one more that is interrupted
// meanwhile.
func TestAWaitForALockOutlastsASilence(t *testing.T) {
	nodes := startNodes(t, 2)
	client := openImpatientClient(t, nodes[0])
	held := takeFlock(t, client, "lock", 1)
	type outcome struct {
		result *storepb.Result
		err    error
	}
	wait := func(ctx context.Context, owner uint64) <-chan outcome {
		ended := make(chan outcome, 1)
		request := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: owner, Wait: true}
		go func() {
			result, err := client.Lock(ctx, &storepb.Caller{}, request)
			ended <- outcome{result, err}
		}()
		return ended
	}
	patient := wait(t.Context(), 2)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	interrupted := wait(ctx, 3)
	require.Eventually(t, func() bool {
		list := &storepb.ListAdvisoryLocks{Ino: held.GetIno(), Viewer: &storepb.Viewer{}}
		result, _ := nodes[0].fsm.Query(&storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: list}})
		return len(result.GetAdvisoryLocks()) == 3
	}, testWait, time.Millisecond)
	cfg := nodes[1].cfg
	require.NoError(t, nodes[1].Close())

	require.ErrorIs(t, queryStatFs(t.Context(), client), context.DeadlineExceeded)
	began := time.Now()
	interrupt()
	gone := (<-interrupted).err
	require.ErrorIs(t, gone, context.DeadlineExceeded)
	require.NotErrorIs(t, gone, session.ErrInterrupted, "the cluster may make it a lock yet")
	require.Less(t, time.Since(began), silentTimeout)
	require.Empty(t, patient)

	cfg.Metrics = nil
	startNode(t, cfg)
	awaitCommands(t, client)
	drop := func(owner uint64) {
		op := &storepb.DropLocks{Ino: held.GetIno(), Kind: held.GetKind(), Owners: []uint64{owner}}
		result, err := client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: op}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
	}
	drop(1)
	got := <-patient
	require.NoError(t, got.err)
	require.Equal(t, storepb.Code_OK, got.result.GetCode())
	drop(2)
	again := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: 4, Wait: true}
	result, err := client.Lock(t.Context(), &storepb.Caller{}, again)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode(), "who was interrupted has none once the cluster is told")
}

// takeFlock makes a file and locks it.
func takeFlock(t *testing.T, client *session.Client, name string, owner uint64) *storepb.TakeLock {
	t.Helper()
	made, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
	require.NoError(t, err)
	op := &storepb.TakeLock{
		Ino: made.GetAttr().GetIno(), Kind: storepb.LockKind_FLOCK, Type: storepb.LockType_EXCLUSIVE, Owner: owner,
	}
	result, err := client.Lock(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	return op
}

// openThrough opens a client that asks what stands for a node, and closes it in the end.
func openThrough(t *testing.T, asked session.Voter, node *Node, opTimeout time.Duration) *session.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := session.Open(ctx, asked, node.peers, session.Config{Host: "h", OpTimeout: opTimeout, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		require.NoError(t, client.Close(ctx))
	})
	return client
}

// noDisk is a node that has no place for commands, but answers what it is asked.
type noDisk struct {
	*Node
	full atomic.Bool
}

func (n *noDisk) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if n.full.Load() && req.GetCommand() != nil {
		return &clusterpb.ExecuteReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	return n.Node.Execute(ctx, req)
}

// TestCommandsFailAtOnceWhileOnlyQueriesAreAnswered has a leader that leads and commits nothing.
func TestCommandsFailAtOnceWhileOnlyQueriesAreAnswered(t *testing.T) {
	node := startNodes(t, 1)[0]
	disk := &noDisk{Node: node}
	client := openThrough(t, disk, node, silentTimeout)

	mutate := func(name string) error {
		_, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
		return err
	}
	disk.full.Store(true)
	require.ErrorIs(t, mutate("first"), context.DeadlineExceeded)
	began := time.Now()
	for range 10 {
		require.ErrorIs(t, mutate("other"), context.DeadlineExceeded)
		require.NoError(t, queryStatFs(t.Context(), client))
	}
	require.Less(t, time.Since(began), silentTimeout, "twenty calls")
	disk.full.Store(false)
	require.Eventually(t, func() bool { return mutate("other") == nil }, testWait, time.Millisecond)
	require.Equal(t, storepb.Code_OK, create(t, client, "first"), "the call that failed left its name")
}

// TestWhatAGivenUpCallMayChangeIsNotTold has a removal fail that may still come: whether its name is
// there is told when that is known, also by a lease. All else is answered meanwhile.
func TestWhatAGivenUpCallMayChangeIsNotTold(t *testing.T) {
	node := startNodes(t, 1)[0]
	ctx, disk := t.Context(), &noDisk{Node: node}
	client := openThrough(t, disk, node, silentTimeout)

	made := func(name string, mode uint32) uint64 {
		op := createOp(name)
		op.GetCreate().Mode = mode
		result, err := client.Mutate(ctx, &storepb.Caller{}, op)
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
		return result.GetAttr().GetIno()
	}
	lock, other := made("lock", syscall.S_IFREG|0o644), made("other", syscall.S_IFDIR|0o755)
	getAttr := func(ino uint64) *storepb.Query {
		return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
	}
	touched := []*storepb.Query{
		lookupOf("lock"), getAttr(namespace.RootIno), getAttr(lock),
		{Query: &storepb.Query_ReadDir{ReadDir: &storepb.ReadDir{Ino: namespace.RootIno}}},
	}
	ask := func(query *storepb.Query) (storepb.Code, error) {
		result, err := client.Query(ctx, query)
		return result.GetCode(), err
	}
	for _, query := range touched { // from now on there may be leases
		_, err := ask(query)
		require.NoError(t, err)
	}

	disk.full.Store(true)
	_, err := client.Mutate(ctx, &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
		Parent: namespace.RootIno, Name: []byte("lock"), Judged: &lock,
	}}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, query := range touched {
		_, err := ask(query)
		require.ErrorIs(t, err, context.DeadlineExceeded, "%v", query)
	}
	_, err = ask(getAttr(other))
	require.NoError(t, err)
	require.NoError(t, queryStatFs(ctx, client))
	disk.full.Store(false)
	for _, query := range touched {
		require.Eventually(t, func() bool { code, err := ask(query); return err == nil && code == storepb.Code_OK }, testWait, time.Millisecond)
	}
}

// lateRemovals is a node that does removals late.
type lateRemovals struct {
	*Node
	late  atomic.Bool
	held  chan *clusterpb.ExecuteRequest
	asked chan struct{} // as removals are asked for from a position on
}

func (n *lateRemovals) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	if req.GetEpoch() != 0 {
		select {
		case n.asked <- struct{}{}:
		default:
		}
	}
	return n.Node.Removals(ctx, req)
}

func (n *lateRemovals) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	switch {
	case !n.late.Load() || req.GetCommand() == nil:
		return n.Node.Execute(ctx, req)
	case req.GetCommand().GetOp().GetUnlink() == nil: // the cancel
		return &clusterpb.ExecuteReply{Outcome: clusterpb.Outcome_NOT_DONE}, nil
	}
	n.held <- req
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestARemovalThatComesLateIsTold has it come after whoever wanted it has given up and asks what is there.
func TestARemovalThatComesLateIsTold(t *testing.T) {
	for what, query := range map[string]func(lock uint64) *storepb.Query{
		"name": func(uint64) *storepb.Query { return lookupOf("lock") },
		"inode": func(lock uint64) *storepb.Query {
			return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: lock}}}
		},
		"lock": func(uint64) *storepb.Query {
			return &storepb.Query{Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Parent: namespace.RootIno, Name: []byte("lock")}}}
		},
	} {
		for _, isJudged := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, judged %v", what, isJudged), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), testWait)
				defer cancel()
				node := &lateRemovals{Node: startNodes(t, 1)[0], held: make(chan *clusterpb.ExecuteRequest, 1), asked: make(chan struct{}, 1)}
				client := openThrough(t, node, node.Node, testWait)
				made, err := client.Mutate(ctx, &storepb.Caller{}, createOp("lock"))
				require.NoError(t, err)
				lock := made.GetAttr().GetIno()
				removed := make(chan namespace.Removal, 1)
				go client.FollowRemovals(ctx, func(r namespace.Removal) {
					if r.Ino != 0 { // else it says that some may have been missed
						removed <- r
					}
				})
				<-node.asked
				removes := &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}
				if isJudged {
					removes.Judged = &lock
				}

				node.late.Store(true)
				impatient, giveUp := context.WithCancel(ctx)
				failed := make(chan error, 1)
				go func() {
					_, err := client.Mutate(impatient, &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: removes}})
					failed <- err
				}()
				removal := <-node.held
				giveUp()
				require.ErrorIs(t, <-failed, context.Canceled)

				type answer struct {
					result *storepb.Result
					err    error
				}
				told := make(chan answer, 1)
				go func() {
					result, err := client.Query(ctx, query(lock))
					told <- answer{result, err}
				}()
				select {
				case a := <-told:
					require.Fail(t, "it is told how it was", "%v", a)
				case <-time.After(100 * time.Millisecond): // in which it would be told
				}
				_, err = node.Node.Execute(ctx, removal)
				require.NoError(t, err)
				node.late.Store(false)
				a := <-told
				require.NoError(t, a.err)
				require.Zero(t, a.result.GetAttr().GetNlink()) // if there is anything
				select {
				case r := <-removed: // for who watches the file on this host
					require.EqualValues(t, lock, r.Ino)
				case <-ctx.Done():
					require.NoError(t, ctx.Err())
				}
			})
		}
	}
}

// noRoom is a node whose cluster has no place for another session.
type noRoom struct {
	*Node
	full atomic.Bool
}

func (n *noRoom) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if n.full.Load() && req.GetCommand().GetOp().GetOpenSession() != nil {
		return &clusterpb.ExecuteReply{Result: &storepb.Result{Code: storepb.Code_TOO_MANY_REQUESTS}}, nil
	}
	return n.Node.Execute(ctx, req)
}

// TestCommandsFailAtOnceWhileThereIsNoSession for them: the cluster answers everything, but not what they
// need.
func TestCommandsFailAtOnceWhileThereIsNoSession(t *testing.T) {
	node := startNodes(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	room := &noRoom{Node: node}
	client, err := session.Open(ctx, room, node.peers, session.Config{Host: "h", OpTimeout: silentTimeout, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close(ctx)) }()

	mutate := func(name string) error {
		_, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
		return err
	}
	room.full.Store(true)
	record := node.sessions.live()[0]
	end := &storepb.EndSession{Id: record.GetId(), IfActive: record.GetActive()}
	_, err = node.proposer.propose(ctx, &storepb.Op{Op: &storepb.Op_EndSession{EndSession: end}})
	require.NoError(t, err)
	require.ErrorIs(t, mutate("first"), context.DeadlineExceeded)
	began := time.Now()
	for range 10 {
		require.ErrorIs(t, mutate("other"), context.DeadlineExceeded)
		require.NoError(t, queryStatFs(t.Context(), client))
	}
	require.Less(t, time.Since(began), silentTimeout, "twenty calls")
	room.full.Store(false)
	require.Eventually(t, func() bool { return mutate("other") == nil }, testWait, time.Millisecond)
	require.NoError(t, mutate("first"))
}
