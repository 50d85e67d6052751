package cluster

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestAMountStaysWithTheClusterThatGoesOn has one that was with a cluster and goes to the one that was
// recovered from it. From then on the majority that is left of the lost one does nothing for it, nor for
// the next process of that mount.
func TestAMountStaysWithTheClusterThatGoesOn(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	var servers []string
	for _, node := range nodes {
		servers = append(servers, node.cfg.Address)
	}
	log := new(logText)
	config := session.Config{
		Host: "m", OpTimeout: 3 * time.Second, SessionFile: filepath.Join(t.TempDir(), "mount.session"),
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	dial := func(wait time.Duration) (*session.Client, error) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		return session.Dial(ctx, servers, config)
	}
	mount, err := dial(testWait)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, create(t, mount, "before"))
	was := mount.Session()

	for _, node := range nodes {
		require.NoError(t, node.Close())
	}
	r, err := consensus.OpenRecovery(nodes[0].cfg.DataDir, quietLogger())
	require.NoError(t, err)
	_, err = r.Do(time.Now(), false)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cfg := nodes[0].cfg
	cfg.Metrics = nil
	recovered := startNode(t, cfg)
	require.Eventually(t, func() bool { return log.has("was recovered or restored as another one") }, testWait, 10*time.Millisecond)
	require.Eventually(t, func() bool { return mount.Session() != 0 && mount.Session() != was }, testWait, 10*time.Millisecond)
	require.Equal(t, storepb.Code_EXISTS, create(t, mount, "before"))
	require.Equal(t, storepb.Code_OK, create(t, mount, "after"))

	var old []*Node
	for _, node := range nodes[1:] {
		cfg := node.cfg
		cfg.Metrics = nil
		opened, err := Open(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = opened.Close() })
		old = append(old, opened)
	}
	stranger := openNodeClient(t, old[0]) // it has never been with the one that goes on
	require.Equal(t, storepb.Code_OK, create(t, stranger, "after"))
	require.NoError(t, recovered.Close())
	_, err = mount.Mutate(t.Context(), &storepb.Caller{}, createOp("of the lost cluster"))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, mount.Close(ctx), "nobody can be told")
	_, err = dial(3 * time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "remove "+config.SessionFile)
	require.True(t, log.has("a server of another cluster is not asked"))
	startNode(t, cfg)
	next, err := dial(testWait)
	require.NoError(t, err)
	t.Cleanup(func() { _ = next.Close(context.Background()) })
	require.Equal(t, storepb.Code_EXISTS, create(t, next, "after"))
	require.Equal(t, storepb.Code_OK, create(t, next, "of the lost cluster"))
}

// TestClusterIDsThatANodeAccepts: one that has not caught up does not know for which clusters its own
// goes on, and sends nobody away for good.
func TestClusterIDsThatANodeAccepts(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	ours := node.dir.ClusterID()
	require.NoError(t, node.fsm.WaitFor(t.Context(), func(ns *namespace.Namespace) bool { return ns.Cluster() == ours }))
	execute := func(cluster string) (clusterpb.Outcome, string) {
		reply, err := node.Execute(t.Context(), &clusterpb.ExecuteRequest{Request: statFs.GetRequest(), Cluster: cluster})
		require.NoError(t, err)
		renewed, err := node.KeepAlive(t.Context(), &clusterpb.KeepAliveRequest{Session: 1, Cluster: cluster})
		require.NoError(t, err)
		require.Equal(t, []any{reply.GetOutcome(), reply.GetCluster()}, []any{renewed.GetOutcome(), renewed.GetCluster()})
		return reply.GetOutcome(), reply.GetCluster()
	}
	for cluster, want := range map[string]clusterpb.Outcome{
		"": clusterpb.Outcome_DONE, ours: clusterpb.Outcome_DONE, "other": clusterpb.Outcome_OTHER_CLUSTER,
	} {
		outcome, id := execute(cluster)
		require.Equal(t, want, outcome, cluster)
		require.Equal(t, ours, id)
	}
	require.NoError(t, node.dir.SetCluster("joined"))
	outcome, id := execute("other")
	require.Equal(t, clusterpb.Outcome_NOT_LEADER, outcome)
	require.Empty(t, id)
}
