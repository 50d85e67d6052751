package cluster

import "lockfs/raftstore/namespace"

// serves tells whether a mount that belongs to a cluster may be served: this one, or one that this one goes on for. Empty: the mount does
// not say.
func (n *Node) serves(cluster string) bool {
	if cluster == "" || cluster == n.dir.ClusterID() {
		return true
	}
	goesOn := false
	n.fsm.View(func(ns *namespace.Namespace) { goesOn = ns.GoesOnFor(cluster) })
	return goesOn
}
