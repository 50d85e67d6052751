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

// serversTimeout is how long servers have to say to which cluster they belong, and at which version it runs.
const serversTimeout = time.Second

// checkServers asks all servers that a mount is given, before anything of an earlier process is settled or taken over. It returns the id of
// their cluster, which is empty if none answers. The error is an rpc.SeveralClustersError, codec.ErrNewer or codec.ErrOlder.
//
// A server that does not answer in time may belong to another cluster, or be behind: the mount does not follow it to another cluster
// later ([clusterBinding]), and the session is refused then.
func checkServers(ctx context.Context, servers []string, nodes []rpc.Node, known version.Range) (cluster string, err error) {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	type answer struct {
		server string
		status *clusterpb.StatusReply // nil: there was none
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
