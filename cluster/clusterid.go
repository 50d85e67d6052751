package cluster

import (
	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/namespace"
)

// acceptsClusterID tells whether a mount that belongs to a cluster is served: DONE if that is this one, or one that this one goes on for, or empty, as
// the mount does not say. Else it is what the mount is answered: OTHER_CLUSTER, or NOT_LEADER from a node that has not caught up so far
// that it knows for which clusters its own goes on.
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

// clusterIDFor is the id of the cluster in an answer that tells what it is.
func (n *Node) clusterIDFor(outcome clusterpb.Outcome) string {
	if outcome == clusterpb.Outcome_NOT_LEADER {
		return ""
	}
	return n.dir.ClusterID()
}
