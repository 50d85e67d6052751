package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
)

// Without a leader a node asks whether it is still a member: at every check if its own configuration
// lacks it (members.isOut), else less often.
const (
	removalCheckInterval = 500 * time.Millisecond
	removalAskInterval   = 5 * time.Second
)

var errRemoved = errors.New("this node was removed from the cluster; it can come back with an empty data directory, as a new member")

// removalWatch ends a node that was removed.
type removalWatch struct {
	ctx     context.Context // ends when the node is closed
	raft    *consensus.Raft
	members *members
	peers   *rpc.Peers
	join    []string // addresses of servers from the configuration of this node
	fail    func(error)
	asked   time.Time
}

// check ends a node that was removed. The cluster does not tell it: it only loses contact with the leader.
func (w *removalWatch) check() {
	if w.raft.State() == raft.Shutdown && w.ctx.Err() == nil {
		w.fail(errRemoved) // it led, and removed itself
		return
	}
	if _, leader := w.raft.LeaderWithID(); leader != "" || !w.members.dir.HasJoined() {
		return
	}
	if !w.members.isOut() && time.Since(w.asked) < removalAskInterval {
		return
	}
	w.asked = time.Now()
	asked := slices.Clone(w.join)
	for _, server := range w.raft.Servers() { // a starting node may not know the members yet
		asked = append(asked, string(server.Address))
	}
	for _, address := range asked {
		removed, leader := w.removedAccordingTo(address)
		if !removed && leader != "" && !slices.Contains(asked, leader) {
			removed, _ = w.removedAccordingTo(leader)
		}
		if removed {
			w.fail(errRemoved)
			return
		}
	}
}

// removedAccordingTo asks a server whether this node was removed, and returns the leader's address. Only
// the present leader counts, and only committed changes: a deposed leader may have tried to remove this
// node. A leader unknown to this node may belong to another cluster.
func (w *removalWatch) removedAccordingTo(address string) (removed bool, leader string) {
	ctx, cancel := context.WithTimeout(w.ctx, rpc.AttemptTimeout)
	defer cancel()
	status, err := w.peers.Node(address).Status(ctx, &clusterpb.StatusRequest{Confirm: true})
	if err != nil || w.raft.Server(status.GetId()) == nil {
		return false, status.GetLeaderAddress()
	}
	return status.GetConfirmed() && !slices.Contains(append(status.GetVoters(), status.GetNonvoters()...), w.members.dir.ID), status.GetLeaderAddress()
}
