package cluster

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

const (
	// removalsWait is how long a node keeps a question for removals.
	removalsWait = 30 * time.Second
	// removalsPause is between two questions to another process, so that many mounts cost little.
	removalsPause = 100 * time.Millisecond
	// removalsRetry is the pause after a node that did not answer.
	removalsRetry = time.Second
)

// Removals answers what this node has seen removed.
func (n *Node) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	ctx, cancel := context.WithTimeout(ctx, removalsWait)
	defer cancel()
	found, epoch, last := n.fsm.Removals(ctx, req.GetEpoch(), req.GetAfter())
	reply := &clusterpb.RemovalsReply{Epoch: epoch, Last: last}
	for _, r := range found {
		reply.Removals = append(reply.Removals, &clusterpb.Removal{
			Session: r.Session, Parent: r.Parent, Name: []byte(r.Name), Ino: r.Ino,
		})
	}
	return reply, nil
}

// FollowRemovals tells of what others have removed, soon after, until ctx ends or the client is closed. When
// the node that is asked fails, or too much happens at once, some are never told of.
func (c *Client) FollowRemovals(ctx context.Context, removed func(parent uint64, name string, ino uint64)) {
	position := new(clusterpb.RemovalsRequest)
	for ctx.Err() == nil && c.ctx.Err() == nil {
		node := c.router.Entrance()
		attempt, cancel := context.WithTimeout(ctx, removalsWait+rpc.AttemptTimeout)
		reply, err := node.Removals(attempt, position)
		cancel()
		pause := removalsPause
		switch {
		case err != nil:
			pause = removalsRetry
		case reply.GetEpoch() == position.GetEpoch():
			for _, r := range reply.GetRemovals() {
				if r.GetSession() != c.lastSession() {
					removed(r.GetParent(), string(r.GetName()), r.GetIno())
				}
			}
		}
		if err == nil {
			position = &clusterpb.RemovalsRequest{Epoch: reply.GetEpoch(), After: reply.GetLast()}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
}
