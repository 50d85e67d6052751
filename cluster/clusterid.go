package cluster

import (
	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/namespace"
)

// acceptsClusterID returns DONE for a mount of this cluster, of one that this cluster replaced, or
// without an id. Otherwise it returns OTHER_CLUSTER, or NOT_LEADER if this node has not caught up enough
// to know the replaced clusters.
func (n *Node) acceptsClusterID(cluster string) clusterpb.Outcome {
	ours := n.dir.ClusterID()
	if cluster == "" || cluster == ours {
		return clusterpb.Outcome_DONE
	}
	outcome := clusterpb.Outcome_OTHER_CLUSTER
	n.fsm.View(func(ns *namespace.Namespace) {
		switch {
		case ns.GoesOnFor(cluster):
			outcome = clusterpb.Outcome_DONE
		case ns.Cluster() != ours:
			outcome = clusterpb.Outcome_NOT_LEADER
		}
	})
	return outcome
}

// clusterIDFor returns the cluster's id for a reply with an outcome.
func (n *Node) clusterIDFor(outcome clusterpb.Outcome) string {
	if outcome == clusterpb.Outcome_NOT_LEADER {
		return ""
	}
	return n.dir.ClusterID()
}
