package session

import (
	"context"
	"fmt"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

// serversTimeout is the time servers have to report their cluster and its version.
const serversTimeout = time.Second

// checkServers asks all configured servers before the client cancels calls or takes over a session. It
// returns the cluster id, or an empty one without replies. The error is an rpc.SeveralClustersError,
// codec.ErrNewer or codec.ErrOlder.
//
// A slow server may belong to another cluster or have an old version. The mount does not follow it to another
// cluster later ([clusterBinding]); the session is refused then.
func checkServers(ctx context.Context, servers []string, nodes []rpc.Node, known version.Range) (cluster string, err error) {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	type answer struct {
		server string
		status *clusterpb.StatusReply // nil: no reply
	}
	answers := make(chan answer, len(nodes))
	for i, node := range nodes {
		go func() {
			status, err := node.Status(ctx, &clusterpb.StatusRequest{})
			if err != nil {
				status = nil
			}
			answers <- answer{servers[i], status}
		}()
	}
	var clusters rpc.Clusters
	var misfit error
	fits := false
	for range nodes {
		a := <-answers
		clusters.Add(a.server, a.status)
		if a.status.GetClusterVersion() == 0 || fits || misfit != nil {
			continue
		}
		if err := namespace.CheckVersion(a.status.GetClusterVersion(), known); err != nil {
			theirs := version.Range{Oldest: a.status.GetOldestVersion(), Newest: a.status.GetNewestVersion()}
			misfit = fmt.Errorf("%w (the server %s knows version %s)", err, a.status.GetName(), theirs)
		}
		fits = misfit == nil
	}
	if cluster, err = clusters.Only(); err == nil {
		err = misfit
	}
	return cluster, err
}
