package cluster

import (
	"context"
	"errors"
	"fmt"

	"lockfs/cluster/consensus"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
)

// TransferLeadership prepares a restart of the leader, during which its mount waits. It pauses leases,
// waits until none is left, and transfers the leadership, so that the next leader need not wait. The only
// voter returns the term in which it leads (Config.ExpiredLeaseTerm), any other node 0. After an error
// this node leads as before.
func (n *Node) TransferLeadership(ctx context.Context) (led ids.Term, err error) {
	term := n.leadership.term()
	if term == 0 {
		return 0, nil
	}
	if !n.proposer.exclusive.Lock(ctx) { // before leases end
		return 0, errors.New("a change of the cluster's members is under way")
	}
	defer n.proposer.exclusive.Unlock()
	lasts, paused := n.leaseGate.table.Pause(term, monotonic())
	if !paused {
		return 0, nil
	}
	defer func() {
		if err != nil {
			n.ResumeLeadership(term)
		}
	}()
	if err := pause.For(ctx, lasts); err != nil {
		return 0, fmt.Errorf("leases are not over: %w", err)
	}
	if len(n.raft.VoterIDs()) == 1 {
		return term, nil
	}
	if err := n.promoter.transferLeadership(ctx); err != nil && n.leadership.term() == term {
		return 0, fmt.Errorf("no other voter leads in place of this one: %w", err)
	}
	return 0, nil
}

// ResumeLeadership grants leases again after TransferLeadership, if this node still leads.
func (n *Node) ResumeLeadership(led ids.Term) {
	n.leaseGate.resume(led, func() bool { return led != 0 && n.leadership.term() == led })
}

// CanStart returns the reason why a restart of this node would fail, as far as visible while it runs.
func (n *Node) CanStart() error {
	if n.raft.IsFull() {
		return errors.New("its disk is full")
	}
	if n.security == nil {
		return nil
	}
	_, err := LoadTLS(n.cfg.DataDir)
	return err
}

// IsRemoved reports whether an error of a node means that the cluster has removed it.
func IsRemoved(err error) bool { return errors.Is(err, errRemoved) }

// IsWithoutCluster reports whether an error of a node means that its data directory belongs to no
// cluster. A start fails until an administrator acts.
func IsWithoutCluster(err error) bool {
	var none *consensus.NoClusterError
	return errors.As(err, &none)
}
