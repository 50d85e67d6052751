package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestClientOfAForgottenSession: nobody can tell whether a call was done, so it is not done again.
func TestClientOfAForgottenSession(t *testing.T) {
	node := startServers(t, 1)[0]
	client := openClient(t, node, "")
	id := client.Session()
	client.EndSession(t)

	_, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("lock"))
	require.ErrorIs(t, err, session.ErrForgotten)
	require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, client, "lock"))
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.NotEqual(t, id, client.Session())
}

func TestSessionEndsWhenItsMountIsSilent(t *testing.T) {
	node := startServers(t, 1)[0]
	client := openClient(t, node, "")
	require.NotZero(t, client.Session())
	client.FallSilent()
	require.Eventually(t, func() bool { return len(node.sessions(t)) == 0 }, testWait, 50*time.Millisecond)
	require.True(t, client.IsFenced(), "the mount knew before the cluster gave it up")
}

func TestClientKnowsClusterTime(t *testing.T) {
	node := startServers(t, 1)[0]
	client := openClient(t, node, "")
	require.NotZero(t, client.Session())
	clusterTime := func() int64 {
		status, err := node.Status(t.Context(), new(clusterpb.StatusRequest))
		require.NoError(t, err)
		return status.GetClusterTime()
	}
	require.InDelta(t, clusterTime(), client.ClusterTime().UnixNano(), float64(time.Minute))
	require.Eventually(t, func() bool { return client.Status().GetLeader() != "" }, testWait, 10*time.Millisecond, "a keepalive")
	client.MoveOffset(time.Hour) // whatever becomes of the wall clock
	require.InDelta(t, clusterTime(), client.ClusterTime().UnixNano(), float64(time.Minute))
	require.InDelta(t, clusterTime(), client.Status().GetClusterTime(), float64(time.Minute))
}

// TestAClockThatIsSetBackMakesNoLockStale: what is written before that is measured is not taken for old.
func TestAClockThatIsSetBackMakesNoLockStale(t *testing.T) {
	node := startServers(t, 1)[0]
	client := openClient(t, node, "")
	require.NotZero(t, client.Session())
	require.Eventually(t, func() bool { return client.Status().GetLeader() != "" }, testWait, 10*time.Millisecond, "a keepalive")
	client.MoveOffset(time.Hour) // set back by an hour since
	require.InDelta(t, 0, client.Offset(), float64(time.Minute))
	client.MoveOffset(-time.Hour) // set right since, maybe
	require.Equal(t, -time.Hour, client.Offset())
}

// crossing is a node that is asked for a keepalive once it has done a farewell.
type crossing struct {
	*cluster.Node
	client *session.Client
	after  ids.Session // the client's
}

func (n *crossing) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	reply, err := n.Node.Execute(ctx, req)
	if req.GetCommand().GetOp().GetCloseSession() != nil {
		n.after = n.client.Session()
		n.client.Hurry()
		time.Sleep(100 * time.Millisecond)
	}
	return reply, err
}

func TestCloseSessionIsTheLastRequest(t *testing.T) {
	node := startServers(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	n := &crossing{Node: node.Node}
	client, err := session.Open(ctx, n, rpc.NewPeers(nil), session.Config{Host: "h", Logger: quietLogger()})
	require.NoError(t, err)
	n.client = client
	require.NotZero(t, client.Session())
	require.NoError(t, client.Close(ctx))
	require.Empty(t, node.sessions(t))
	require.Zero(t, n.after, "what was locked in it may be somebody else's by now")
}

// deaf hears nothing of the first session that it has opened until that has ended.
type deaf struct {
	server
	t       testing.TB
	deafFor ids.Session
}

func (d *deaf) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	reply, err := d.server.Execute(ctx, req)
	if req.GetCommand().GetOp().GetOpenSession() == nil || d.deafFor != 0 {
		return reply, err
	}
	d.deafFor = ids.Session(req.GetCommand().GetSession())
	require.NotEmpty(d.t, d.sessions(d.t))
	require.Eventually(d.t, func() bool { return len(d.sessions(d.t)) == 0 }, testWait, 50*time.Millisecond)
	return nil, errors.New("the answer is lost")
}

func TestASessionThatNobodyHeardOfIsFollowedByAnother(t *testing.T) {
	node := &deaf{server: startServers(t, 1)[0], t: t}
	client, err := session.Open(t.Context(), node, rpc.NewPeers(nil), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	require.NotZero(t, node.deafFor)
	require.NotEqual(t, node.deafFor, client.Session())
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
}
