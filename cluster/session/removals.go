package session

import (
	"context"
	"sync"
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

// FollowRemovals tells of what others have removed, and calls of this mount that were given up, soon after, until ctx ends or the client is closed. When
// the node that is asked fails, or too much happens at once, some are never told of: removed is then called with a removal of no
// inode, as it is in the beginning. removed may be called by several at once, and be told of one twice.
func (c *Client) FollowRemovals(ctx context.Context, removed func(namespace.Removal)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	before, end := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer end()
	asking.Go(func() { c.followRemovals(before, c.anyNodeBefore, func() {}, removed) })
	select {
	case <-c.settled:
		// Who is asked now tells first where it is. What was removed before that it never tells; the other one does, if it is not far behind.
		c.followRemovals(ctx, c.router.AnyNode, func() { time.AfterFunc(removalsRetry, end) }, removed)
	case <-ctx.Done():
	}
}

// anyNodeBefore is whom to ask until the client settles, and for a moment afterwards.
func (c *Client) anyNodeBefore() rpc.Node {
	entrance := c.router.AnyNode()
	if before := c.before.Load(); before != nil { // which is kept before there is another entrance
		return *before
	}
	return entrance
}

// followRemovals asks one entrance. It says when that has told for the first time where it is.
func (c *Client) followRemovals(ctx context.Context, entrance func() rpc.Node, begun func(), removed func(namespace.Removal)) {
	position, missed := new(clusterpb.RemovalsRequest), false
	for ctx.Err() == nil {
		node := entrance()
		attempt, cancel := context.WithTimeout(ctx, rpc.RemovalsWait+rpc.AttemptTimeout)
		reply, err := node.Removals(attempt, position)
		cancel()
		pause := removalsPause
		switch {
		case err != nil:
			pause, missed = removalsRetry, true
		case reply.GetEpoch() == position.GetEpoch():
			for _, r := range reply.GetRemovals() {
				gone := namespace.Removal{
					Session: ids.Session(r.GetSession()), Parent: ids.Inode(r.GetParent()), Name: string(r.GetName()), Ino: ids.Inode(r.GetIno()),
				}
				if gone.Session != c.lastSession() || c.abandoned.lately() {
					c.leases.Drop(gone.Parent, gone.Ino) // who is told of it and looks finds nothing
					removed(gone)
				}
			}
		}
		if err == nil {
			if position.GetEpoch() == 0 {
				begun()
			}
			if missed || reply.GetEpoch() != position.GetEpoch() || reply.GetLast()-position.GetAfter() > uint64(len(reply.GetRemovals())) {
				missed = false
				removed(namespace.Removal{})
			}
			position = &clusterpb.RemovalsRequest{Epoch: reply.GetEpoch(), After: reply.GetLast()}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
