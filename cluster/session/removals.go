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
	// removalsPause is the pause between two requests to a node, to limit the load of many mounts.
	removalsPause = 100 * time.Millisecond
	removalsRetry = time.Second
)

// FollowRemovals calls removed after removals by other mounts, and by abandoned calls of this one. It returns
// when ctx ends or the client closes. Removals can be lost if the node fails or too many come at once.
// FollowRemovals then calls removed with no inode, as it also does at the start. Calls may be concurrent, and
// duplicates are possible.
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
		// The new node starts with its current position. The old node still reports earlier removals, unless
		// it is far behind.
		c.followRemovals(ctx, c.router.AnyNode, func() { time.AfterFunc(removalsRetry, end) }, removed)
	case <-ctx.Done():
	}
}

// anyNodeBefore returns the node to ask before Attach, and shortly afterwards.
func (c *Client) anyNodeBefore() rpc.Node {
	entrance := c.router.AnyNode()
	if before := c.before.Load(); before != nil { // set before the entrance changes
		return *before
	}
	return entrance
}

// followRemovals asks one node. It calls begun after the node has first returned its position.
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
					c.leases.Drop(gone.Parent, gone.Ino) // a caller which looks now finds no name
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
