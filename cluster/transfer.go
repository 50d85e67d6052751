package cluster

import (
	"context"
	"errors"
	"fmt"

	"lockfs/cluster/consensus"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
)

// TransferLeadership is for a node that leads and is about to end for a moment, while programs wait for its mount: it has another voter lead, and before
// that waits until nothing is leased any more, so that nobody has to wait for that who leads next. The only voter answers the term in which
// it leads (Config.ExpiredLeaseTerm), any other one 0. The error says that it leads on as before.
func (n *Node) TransferLeadership(ctx context.Context) (led ids.Term, err error) {
	term := n.leadership.term()
	if term == 0 {
		return 0, nil
	}
	if !n.proposer.exclusive.Lock(ctx) { // before leases are ended
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

// ResumeLeadership takes back what of a Resign can be taken back: that nothing is leased. A node that leads no more does not lead by that.
func (n *Node) ResumeLeadership(led ids.Term) {
	n.leaseGate.resume(led, func() bool { return led != 0 && n.leadership.term() == led })
}

// CanStart tells why this node could not be started anew, as far as that can be seen while it runs.
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

// IsRemoved tells whether an error of a node says that the cluster has shut it out for good.
func IsRemoved(err error) bool { return errors.Is(err, errRemoved) }

// IsWithoutCluster reports whether an error of a node says that its data directory belongs to no cluster: no start succeeds before an
// administrator acts.
func IsWithoutCluster(err error) bool {
	var none *consensus.NoClusterError
	return errors.As(err, &none)
}
