package session

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// keep stores a leased result and starts the renewal of the lease.
func (c *Client) keep(ticket lease.Ticket, generation uint64, result *storepb.Result, inodes []ids.Inode, lasts time.Duration) {
	if c.leases.Keep(ticket, generation, result, inodes, lasts, hostinfo.BootTime()) {
		select {
		case c.leaseBegun <- struct{}{}:
		default:
		}
	}
}

// keepLeases renews the lease while it is in use, and releases the last one at the end.
func (c *Client) keepLeases() {
	defer close(c.returned)
	for {
		select {
		case <-c.leaseBegun:
			c.keepLease()
		case <-c.alive.Done():
			return
		}
	}
}

func (c *Client) keepLease() {
	var whose lease.Holder
	var of, dropped uint64 // last processed revocation of a generation
	for {
		holder, generation, isUsed := c.leases.Lease(hostinfo.BootTime())
		if !isUsed || c.alive.Err() != nil {
			c.releaseLease()
			return
		}
		if generation != of || holder != whose {
			of, whose, dropped = generation, holder, 0
		}
		var sent time.Duration
		renew := func(to rpc.Node, ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
			sent = hostinfo.BootTime()
			req.Left = int64(c.leases.Remaining(holder, generation, sent))
			return to.Lease(ctx, req)
		}
		ctx, cancel := context.WithTimeout(c.alive, rpc.AttemptTimeout)
		reply, err := rpc.Ask(ctx, c.router, renew, &clusterpb.LeaseRequest{
			Session: uint64(holder.Session), Client: holder.Client, Generation: generation, Dropped: dropped,
		})
		cancel()
		switch {
		case c.alive.Err() != nil:
		case err != nil:
			c.leases.Clear() // the lease has ended, or ends soon
			return
		case !reply.GetKnown():
			c.leases.Invalidate(holder, generation)
		default:
			c.leases.Drop(inodesOf(reply.GetDrop())...)
			dropped = max(dropped, reply.GetNumber())
			if reply.GetExtended() {
				c.leases.Extend(holder, generation, sent, time.Duration(reply.GetHeld()), hostinfo.BootTime())
			}
		}
	}
}

func inodesOf(numbers []uint64) []ids.Inode {
	inodes := make([]ids.Inode, len(numbers))
	for i, number := range numbers {
		inodes[i] = ids.Inode(number)
	}
	return inodes
}

// releaseLease releases the lease, so no change waits for this mount. If the message is lost, changes may
// wait until the lease expires or this mount requests another one.
func (c *Client) releaseLease() {
	holder, generation := c.leases.Clear()
	if generation == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, lease.Duration)
	defer cancel()
	_, err := rpc.Ask(ctx, c.router, rpc.Node.Lease, &clusterpb.LeaseRequest{
		Session: uint64(holder.Session), Client: holder.Client, Generation: generation, Release: true,
	})
	if err != nil {
		c.logger.Debug("a lease was not released", "error", err)
	}
}
