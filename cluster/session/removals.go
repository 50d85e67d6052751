package session

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

const (
	// removalsPause is between two questions to another process, so that many mounts cost little.
	removalsPause = 100 * time.Millisecond
	// removalsRetry is the pause after a node that did not answer.
	removalsRetry = time.Second
)

// FollowRemovals tells of what others have removed, soon after, until ctx ends or the client is closed. When
// the node that is asked fails, or too much happens at once, some are never told of.
func (c *Client) FollowRemovals(ctx context.Context, removed func(namespace.Removal)) {
	position := new(clusterpb.RemovalsRequest)
	for ctx.Err() == nil && c.ctx.Err() == nil {
		node := c.router.Entrance()
		attempt, cancel := context.WithTimeout(ctx, rpc.RemovalsWait+rpc.AttemptTimeout)
		reply, err := node.Removals(attempt, position)
		cancel()
		pause := removalsPause
		switch {
		case err != nil:
			pause = removalsRetry
		case reply.GetEpoch() == position.GetEpoch():
			for _, r := range reply.GetRemovals() {
				gone := namespace.Removal{
					Session: ids.Session(r.GetSession()), Parent: ids.Inode(r.GetParent()), Name: string(r.GetName()), Ino: ids.Inode(r.GetIno()),
				}
				c.leases.Drop(gone.Parent, gone.Ino) // who is told of it and looks finds nothing
				if gone.Session != c.lastSession() {
					removed(gone)
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
