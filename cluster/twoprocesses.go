package cluster

import (
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// reportConflict raises an alarm about two processes with the identity of one server, once, on the leader.
func (n *Node) reportConflict(found *conflictError) {
	n.logger.Error("a process of a server is refused", "id", found.id, "error", found)
	if n.leadership.term() == 0 {
		return
	}
	raised := false
	n.fsm.View(func(ns *namespace.Namespace) { raised = ns.HasAlarm(namespace.AlarmTwoProcesses, found.id) })
	if raised {
		return
	}
	n.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_RaiseAlarm{RaiseAlarm: &storepb.RaiseAlarm{Alarm: &storepb.Alarm{
		Kind: namespace.AlarmTwoProcesses, Node: found.id, Name: found.name, Text: found.Error(),
	}}}})
}
