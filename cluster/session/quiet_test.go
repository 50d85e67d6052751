package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// quiet is a node that can be silent, and late.
type quiet struct {
	server
	silent     atomic.Bool                                          // it answers waits at most
	late       time.Duration                                        // is what answers a keepalive
	created    func()                                               // is called before a creation is answered
	leased     func(*clusterpb.LeaseRequest, *clusterpb.LeaseReply) // and before an extension is
	asked      atomic.Pointer[time.Time]                            // when, for the first keepalive
	askedLast  atomic.Int64                                         // by hostinfo.BootTime
	ttl        atomic.Int64
	keepalives atomic.Int32 // answered
}

func (q *quiet) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if q.silent.Load() && req.GetQuery().GetAwaitLock() == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	reply, err := q.server.Execute(ctx, req)
	if q.created != nil && req.GetCommand().GetOp().GetCreate() != nil {
		q.created()
	}
	return reply, err
}

func (q *quiet) KeepAlive(ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	if q.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	q.asked.CompareAndSwap(nil, new(time.Now()))
	q.askedLast.Store(int64(hostinfo.BootTime()))
	reply, err := q.server.KeepAlive(ctx, req)
	q.ttl.Store(reply.GetTtl())
	time.Sleep(q.late)
	q.keepalives.Add(1)
	return reply, err
}

func (q *quiet) Lease(ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
	reply, err := q.server.Lease(ctx, req)
	if q.leased != nil && err == nil {
		q.leased(req, reply)
	}
	return reply, err
}

func openQuiet(t *testing.T, q *quiet, timeout time.Duration) *session.Client {
	t.Helper()
	q.server = startServers(t, 1)[0]
	client, err := session.Open(t.Context(), q, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: timeout, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { q.silent.Store(false); _ = client.Close(context.Background()) })
	return client
}

// TestAnOutageLastsUntilAMajorityAnswers: neither a query in vain ends it, nor what one node may say by itself.
func TestAnOutageLastsUntilAMajorityAnswers(t *testing.T) {
	const timeout = time.Second
	q := new(quiet)
	client := openQuiet(t, q, timeout)
	ask := func(query *storepb.Query) error {
		_, err := client.Query(t.Context(), query)
		return err
	}
	statFs := &storepb.Query{Query: &storepb.Query_StatFs{StatFs: new(storepb.StatFs)}}
	inVain := func() (took time.Duration) {
		began := time.Now()
		require.ErrorIs(t, ask(statFs), context.DeadlineExceeded)
		return time.Since(began)
	}
	require.NoError(t, ask(statFs))
	q.silent.Store(true)
	for range 2 { // the first time a keepalive may have been answered at the last moment
		if inVain() < timeout {
			break
		}
	}
	for range 10 {
		require.Less(t, inVain(), timeout)
		require.NoError(t, ask(&storepb.Query{
			Query: &storepb.Query_AwaitLock{AwaitLock: &storepb.AwaitLock{Session: uint64(client.Session())}},
		}), "whoever waits asks again and again")
	}
	q.silent.Store(false)
	client.Hurry()
	require.Eventually(t, func() bool { return ask(statFs) == nil }, testWait, time.Millisecond)
}

// TestAHostThatSleptLooksAround before a call is answered: its session may be over, and its lock another's.
func TestAHostThatSleptLooksAround(t *testing.T) {
	q := new(quiet)
	client := openQuiet(t, q, testWait)
	require.Equal(t, storepb.Code_OK, create(t, client, "before"))
	var before int32
	q.created = func() {
		client.Oversleep()
		before = q.keepalives.Load()
	}
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.Greater(t, q.keepalives.Load(), before)
}

// TestAClockIsComparedInTheMiddleOfAKeepalive: the cluster's may have been read at any moment of it.
func TestAClockIsComparedInTheMiddleOfAKeepalive(t *testing.T) {
	q := &quiet{late: 300 * time.Millisecond}
	client := openQuiet(t, q, testWait)
	require.Eventually(t, func() bool { return client.Status().GetLeader() != "" }, testWait, time.Millisecond, "a keepalive")
	require.Less(t, client.MeasuredOffset().Abs(), time.Since(*q.asked.Load()))
}

// TestDropsBelongToTheirLease: the leader is told in each how far the mount has dropped what it was asked to in that one.
func TestDropsBelongToTheirLease(t *testing.T) {
	t.Setenv("LOCKFS_TEST_LEASES", "on")
	const number = 1_000_000
	q := new(quiet)
	var opened atomic.Pointer[session.Client]
	ask := func() {
		_, err := opened.Load().Query(t.Context(), &storepb.Query{
			Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: namespace.RootIno}},
		})
		assert.NoError(t, err)
	}
	var first, second atomic.Uint64 // generations
	told := make(chan uint64, 1)
	q.leased = func(req *clusterpb.LeaseRequest, reply *clusterpb.LeaseReply) {
		switch generation := req.GetGeneration(); {
		case !reply.GetKnown() || req.GetRelease():
		case generation == first.Load() && req.GetDropped() == number: // another lease takes its place
			client := opened.Load()
			client.ClearLeases()
			for client.Leased() == 0 {
				ask()
			}
			second.Store(client.Leased())
		case generation == second.Load():
			select {
			case told <- req.GetDropped():
			default:
			}
		default:
			first.Store(generation)
			reply.Number = number
		}
	}
	opened.Store(openQuiet(t, q, testWait))
	for {
		ask()
		select {
		case dropped := <-told:
			require.Zero(t, dropped)
			require.NotEqual(t, first.Load(), second.Load())
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// TestAMountReliesOnItsSessionForLessThanIsPromised, from when it asked.
func TestAMountReliesOnItsSessionForLessThanIsPromised(t *testing.T) {
	q := new(quiet)
	client := openQuiet(t, q, testWait)
	require.Eventually(t, func() bool { return client.Status().GetLeader() != "" }, testWait, time.Millisecond, "a keepalive")
	until := client.LivesUntil() // before it asks again
	require.Positive(t, until)
	require.Less(t, int64(until), q.askedLast.Load()+q.ttl.Load())
}
