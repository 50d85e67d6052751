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

// A node that hears from no leader asks whether it is still a member: now and then, and at each look when its own configuration has it
// no more (members.isOut).
const (
	removalCheckInterval = 500 * time.Millisecond
	removalAskInterval   = 5 * time.Second
)

var errRemoved = errors.New("this node was removed from the cluster; it can come back with an empty data directory, as a new member")

// removalWatch ends a node that was taken out.
type removalWatch struct {
	ctx     context.Context // ends when the node is closed
	raft    *consensus.Raft
	members *members
	peers   *rpc.Peers
	join    []string // API addresses of servers that this node was told of
	fail    func(error)
	asked   time.Time
}

// check ends a node that has been taken out: nobody tells it, it only hears no leader any more.
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
	for _, server := range w.raft.Servers() { // one that has just started may not know the members yet
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

// removedAccordingTo asks at an API address whether this node was removed, and who leads. Only the present leader knows, and only of
// what is committed: one that was deposed meanwhile may have tried to remove this node, and all others may count on it. A leader
// of whom this node has never heard may be another cluster's.
func (w *removalWatch) removedAccordingTo(address string) (removed bool, leader string) {
	ctx, cancel := context.WithTimeout(w.ctx, rpc.AttemptTimeout)
	defer cancel()
	status, err := w.peers.Node(address).Status(ctx, &clusterpb.StatusRequest{Confirm: true})
	if err != nil || w.raft.Server(status.GetId()) == nil {
		return false, status.GetLeaderAddress()
	}
	return status.GetConfirmed() && !slices.Contains(append(status.GetVoters(), status.GetNonvoters()...), w.members.dir.ID), status.GetLeaderAddress()
}
