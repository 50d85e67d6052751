package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// release asks for a lock of the root to be taken away as an administrator does.
func release(t testing.TB, node *Node, unlink *storepb.Unlink) *storepb.Result {
	t.Helper()
	unlink.Parent = 1
	reply, err := node.Proxy().InProcess().Change(asUser(t, 0), &clusterpb.ChangeRequest{Op: &storepb.Op{Op: &storepb.Op_Unlink{Unlink: unlink}}})
	require.NoError(t, err)
	return reply.GetResult()
}

func TestAnAdministratorReleasesTheLockThatHeSaw(t *testing.T) {
	node := startNode(t, testConfig(t, "n0"))
	client := openTestClient(t, node, "")
	name := []byte("deploy.lock")
	require.Equal(t, storepb.Code_OK, create(t, client, string(name)))
	listed, err := node.Proxy().InProcess().Execute(asUser(t, 0), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{
		Query: &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: &storepb.ListLocks{Viewer: new(storepb.Viewer)}}},
	}})
	require.NoError(t, err)
	require.Len(t, listed.GetResult().GetLocks(), 1)
	token := listed.GetResult().GetLocks()[0].GetToken()

	for _, unlink := range []*storepb.Unlink{{Name: name}, {Name: name, Force: true}, {Name: name, IfToken: token}} {
		require.Equal(t, storepb.Code_INVALID, release(t, node, unlink).GetCode(), "%v", unlink)
	}
	require.Equal(t, storepb.Code_NOT_FOUND, release(t, node, &storepb.Unlink{Name: name, Force: true, IfToken: token + 1}).GetCode())
	require.Equal(t, storepb.Code_EXISTS, create(t, client, string(name)))
	require.Equal(t, storepb.Code_OK, release(t, node, &storepb.Unlink{Name: name, Force: true, IfToken: token}).GetCode())
	event := lastEvent(t, node, "lock_removed")
	require.Equal(t, "by force", event.GetReason())
	require.Equal(t, node.dir.Name, event.GetBy().GetHost())

	require.Equal(t, storepb.Code_OK, create(t, client, string(name)))
	require.Equal(t, storepb.Code_NOT_FOUND, release(t, node, &storepb.Unlink{Name: name, Force: true, IfToken: token}).GetCode(), "it is another one")
	_, err = node.Proxy().InProcess().Change(asUser(t, 1000), &clusterpb.ChangeRequest{Op: &storepb.Op{Op: &storepb.Op_Unlink{
		Unlink: &storepb.Unlink{Parent: 1, Name: name, Force: true, IfToken: token},
	}}})
	require.ErrorContains(t, err, "uid 1000 may not ask for unlink")
}

func TestANodeRemembersItsLastHour(t *testing.T) {
	r := newLatencyWindow()
	for i := range 100 {
		r.recordCommit(time.Duration(i+1) * time.Millisecond)
	}
	r.recordLag(3)
	r.recordLag(2)
	r.closeSample(time.Unix(60, 0))
	for i := range samplesKept {
		r.closeSample(time.Unix(int64(90+30*i), 0))
	}
	samples := r.all()
	require.Len(t, samples, samplesKept)
	require.Zero(t, samples[0].GetCommits(), "the oldest was dropped")

	r = newLatencyWindow()
	for i := range 3 * durationsKept {
		r.recordWrite(time.Duration(i))
	}
	r.recordLag(3)
	r.closeSample(time.Unix(60, 0))
	sample := r.all()[0]
	require.Equal(t, uint64(3), sample.GetLag())
	require.Equal(t, uint64(3*durationsKept), sample.GetWrites())
	require.InDelta(t, 1.5*durationsKept, sample.GetWriteP50(), durationsKept/3, "any is as likely to be kept")
	require.Greater(t, sample.GetWriteP99(), sample.GetWriteP50())
}
