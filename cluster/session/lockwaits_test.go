package session_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// counting is a node that counts the questions about waits, and loses replies.
type counting struct {
	server
	queries atomic.Int32 // AwaitLock, of single requests
	polls   atomic.Int32 // EndedWaits
	whole   atomic.Int32 // of them, those for all that wait
	wide    atomic.Int32 // those for names and events
	lose    atomic.Int32 // so many replies that tell of ends are lost
	delay   atomic.Int64 // of each reply to EndedWaits
	shut    atomic.Bool  // no session can be opened
}

func (n *counting) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if req.GetQuery().GetAwaitLock() != nil {
		n.queries.Add(1)
	}
	if req.GetCommand().GetOp().GetOpenSession() != nil && n.shut.Load() {
		return nil, errors.New("no session is opened")
	}
	return n.server.Execute(ctx, req)
}

func (n *counting) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	reply, err := n.server.EndedWaits(ctx, req)
	time.Sleep(time.Duration(n.delay.Load()))
	n.polls.Add(1)
	if req.GetAfter() == 0 {
		n.whole.Add(1)
	}
	if req.GetEvents() || len(req.GetNames()) > 0 {
		n.wide.Add(1)
	}
	if len(reply.GetGranted())+len(reply.GetEnded())+len(reply.GetNames()) > 0 && n.lose.Add(-1) >= 0 {
		return nil, errors.New("the reply is lost")
	}
	return reply, err
}

func openCounting(t *testing.T, n *counting) *session.Client {
	t.Helper()
	n.server = startServers(t, 1)[0]
	return n.open(t)
}

func (n *counting) open(t *testing.T) *session.Client {
	t.Helper()
	client, err := session.Open(t.Context(), n, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// TestAllWaitsShareOneQuestion has many owners wait. No request is asked about by itself, and each gets the lock though replies are lost.
func TestAllWaitsShareOneQuestion(t *testing.T) {
	const waiters, lost = 50, 5
	n := new(counting)
	client := openCounting(t, n)
	held := takeFlock(t, client, "lock", 1)
	n.lose.Store(lost)
	var all sync.WaitGroup
	codes := make(chan storepb.Code, waiters)
	for i := range waiters {
		all.Go(func() {
			op := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: uint64(2 + i), Wait: true}
			result, err := client.TakeLock(context.Background(), &storepb.Caller{}, op)
			if err == nil && result.GetCode() == storepb.Code_OK {
				dropLocks(t, client, held, op.GetOwner())
			}
			codes <- result.GetCode()
		})
	}
	awaitWaiting(t, client, held, waiters)
	polls := n.polls.Load()
	require.Eventually(t, func() bool { return n.polls.Load() >= polls+2 }, testWait, time.Millisecond)
	asked := n.queries.Load()
	require.LessOrEqual(t, asked, int32(waiters), "at most once each, as they began to wait")
	dropLocks(t, client, held, 1)
	all.Wait()
	for range waiters {
		require.Equal(t, storepb.Code_OK, <-codes)
	}
	require.Equal(t, asked, n.queries.Load(), "the leader tells with an end that it is a lock")
	require.Less(t, n.lose.Load(), int32(1))
}

// awaitWaiting waits until so many requests for a lock wait.
func awaitWaiting(t *testing.T, client *session.Client, held *storepb.TakeLock, waiters int) {
	t.Helper()
	require.Eventually(t, func() bool {
		list := &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Ino: held.GetIno(), Viewer: &storepb.Viewer{}}}
		result, err := client.Query(t.Context(), &storepb.Query{Query: list})
		return err == nil && len(result.GetAdvisoryLocks()) == 1+waiters
	}, testWait, time.Millisecond)
}

// TestWaitsGoOnInAnotherProcess hands a session over while requests wait. One becomes a lock in between.
func TestWaitsGoOnInAnotherProcess(t *testing.T) {
	const waiters = 20
	servers := startServers(t, 1)
	node := servers[0]
	first := openClient(t, node, filepath.Join(t.TempDir(), "mount.session"))
	other := openClient(t, node, "")
	held := takeFlock(t, other, "lock", 1)
	request := func(owner uint64) *storepb.AwaitLock {
		op := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: owner, Wait: true}
		result, request, err := first.RequestLock(&storepb.Caller{}, op)
		require.NoError(t, err)
		require.Equal(t, storepb.Code_WAITING, result.GetCode())
		return request
	}
	requests := make([]*storepb.AwaitLock, waiters)
	for i := range requests {
		requests[i] = request(uint64(2 + i))
	}
	suspended, suspend := context.WithCancel(t.Context())
	suspend()
	result, err := first.AwaitLock(suspended, nil, requests[0])
	require.NoError(t, err)
	require.Equal(t, storepb.Code_WAITING, result.GetCode())
	file, err := first.HandOver(t.Context())
	require.NoError(t, err)
	dropLocks(t, other, held, 1)

	heir, err := node.OpenClient(t.Context(), session.Config{Host: "h", OpTimeout: testWait, Inherited: file, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = heir.Close(context.Background()) })
	for i, request := range requests {
		result, err := heir.AwaitLock(t.Context(), nil, request)
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode(), "request %d", i)
		dropLocks(t, heir, held, request.GetOwner())
	}
}

// TestWaitsThatGoOnDoNotFloodTheLeader has a process go on with many waits at once, each of which may have ended before.
func TestWaitsThatGoOnDoNotFloodTheLeader(t *testing.T) {
	const waiters, mostQuestions = 300, 30
	n := &counting{server: startServers(t, 1)[0]}
	first := openClient(t, n.server, filepath.Join(t.TempDir(), "mount.session"))
	held := takeFlock(t, first, "lock", 1)
	requests := make([]*storepb.AwaitLock, waiters)
	for i := range requests {
		op := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: uint64(2 + i), Wait: true}
		_, request, err := first.RequestLock(&storepb.Caller{}, op)
		require.NoError(t, err)
		requests[i] = request
	}
	file, err := first.HandOver(t.Context())
	require.NoError(t, err)
	heir, err := session.Open(t.Context(), n, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Inherited: file, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = heir.Close(context.Background()) })
	var all sync.WaitGroup
	for _, request := range requests {
		all.Go(func() {
			result, err := heir.AwaitLock(context.Background(), nil, request)
			if err == nil && result.GetCode() == storepb.Code_OK {
				dropLocks(t, heir, held, request.GetOwner())
			}
		})
	}
	dropLocks(t, heir, held, 1)
	all.Wait()
	require.LessOrEqual(t, n.whole.Load(), int32(mostQuestions))
}

// TestAWaitEndsWithItsSession, of which the mount may not have heard yet.
func TestAWaitEndsWithItsSession(t *testing.T) {
	client := openClient(t, startServers(t, 1)[0], "")
	held := takeFlock(t, client, "lock", 1)
	_, ended := startWaiting(t, client, held, 2)
	client.EndSession(t)
	require.Contains(t, []storepb.Code{storepb.Code_SESSION_LOST, storepb.Code_NOT_FOUND}, (<-ended).GetCode())
}
