package session

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Query answers from the state as it is after everything that was acknowledged before. An error wraps
// context.DeadlineExceeded (see Create), or why ctx has ended. The result may be shared: nobody changes it.
func (c *Client) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if refused := c.notYet(query); refused != nil {
		return refused, nil
	}
	question := c.question(query)
	if question != "" {
		if result := c.leases.Get(question, hostinfo.BootTime); result != nil {
			return result, nil
		}
	}
	if c.near != nil {
		if result := c.near.QuerySince(query); result != nil {
			return result, nil
		}
	}
	if !waits(query) {
		if err := c.mayAsk(anything); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.patience(ctx, anything)
	defer cancel()
	result, err := c.queryLeasing(ctx, question, query)
	if err == nil && query.GetSince() == 0 && query.GetAwaitLock() == nil { // which one node may answer by itself
		c.answered(anything)
	}
	return result, err
}

// waits tells of queries that are answered when something happens. Whoever asks them waits anyway, again and again.
func waits(query *storepb.Query) bool {
	return query.GetListEvents().GetWait() || query.GetAwaitChange() != nil || query.GetAwaitLock() != nil
}

// queryProbing answers a query whose confirmation is up to this client if a voter to probe is known, to the leader if not.
func (c *Client) queryProbing(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if req.GetQuery().GetSince() != 0 { // mostly answered without a majority's word
		return c.execute(ctx, req)
	}
	node, id := c.probed.get(c.ctx, c.router.Entries)
	if node == nil {
		return c.execute(ctx, req)
	}
	asked, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	word := make(chan ids.Term, 1)
	go func() {
		reply, err := node.Probe(asked, &clusterpb.ProbeRequest{})
		if err != nil || reply.GetId() != id || reply.GetLeads() || !c.cluster.is(reply.GetCluster()) {
			word <- 0
			return
		}
		word <- ids.Term(reply.GetTerm())
	}()
	req.Probed = id
	reply, err := c.execute(ctx, req)
	if err == nil && reply.GetTerm() == 0 {
		c.probed.forget(node) // the leader has asked for more
	}
	if err != nil || reply.GetTerm() == 0 {
		return reply, err
	}
	select {
	case term := <-word:
		if term == ids.Term(reply.GetTerm()) {
			return reply, nil
		}
	case <-time.After(rpc.Promptly):
	}
	c.probed.forget(node)
	req.Probed = ""
	return c.execute(ctx, req)
}

// query asks. wants is who wants a lease on the answer, if anybody does.
func (c *Client) query(ctx context.Context, query *storepb.Query, wants lease.Holder) (*clusterpb.ExecuteReply, error) {
	request := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}, Lease: uint64(wants.Session), Client: wants.Client}
	if c.near != nil {
		voter, term := c.near.Word()
		request.Voter, request.Term = voter, uint64(term)
		return c.execute(ctx, request)
	}
	return c.queryProbing(ctx, request)
}

// question is what a query asks, for one whose answer may be leased (package lease); empty: it is none, or nobody gives leases.
func (c *Client) question(query *storepb.Query) string {
	switch query.GetQuery().(type) {
	case *storepb.Query_Lookup, *storepb.Query_GetAttr, *storepb.Query_Read, *storepb.Query_ReadDir:
	default:
		return ""
	}
	if !c.givesLeases.Load() {
		return ""
	}
	since := query.Since
	query.Since = 0
	question, err := proto.MarshalOptions{Deterministic: true}.Marshal(query)
	query.Since = since
	if err != nil {
		return ""
	}
	return string(question)
}

// holder is who holds what is leased to this client in the session in use.
func (c *Client) holder() lease.Holder {
	session := c.lastSession()
	if session == 0 {
		return lease.Holder{}
	}
	return lease.Holder{Session: session, Client: c.number}
}

// queryLeasing asks, and keeps the answer if that is leased. An answer that is kept says of no command that it was applied: others may
// have been since.
func (c *Client) queryLeasing(ctx context.Context, question string, query *storepb.Query) (*storepb.Result, error) {
	if question == "" {
		reply, err := c.query(ctx, query, lease.Holder{})
		return reply.GetResult(), err
	}
	holder := c.holder()
	ticket, wants := c.leases.Ask(holder, question, hostinfo.BootTime())
	if !wants && !fault.EagerLeases {
		holder = lease.Holder{}
	}
	reply, err := c.query(ctx, query, holder)
	if err != nil || reply.GetLease() == 0 || holder != c.holder() {
		return reply.GetResult(), err
	}
	if fault.LeaseFromAnswer {
		ticket.Sent = hostinfo.BootTime()
	}
	inodes, _ := namespace.Keys(query, reply.GetResult())
	kept := proto.Clone(reply.GetResult()).(*storepb.Result)
	kept.Index = 0
	if c.leases.Keep(ticket, reply.GetLease(), kept, inodes, time.Duration(reply.GetLeaseLasts())) {
		select {
		case c.leaseBegun <- struct{}{}:
		default:
		}
	}
	return reply.GetResult(), nil
}

// keepLeases has the lease extended while there is one that is used, and gives the last one back at the end.
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

// keepLease does so until nobody uses the lease any more.
func (c *Client) keepLease() {
	var whose lease.Holder
	var of, dropped uint64 // the last request that was done in a generation
	for {
		holder, generation, isUsed := c.leases.Lease(hostinfo.BootTime())
		if !isUsed || c.alive.Err() != nil {
			c.giveBack(holder, generation)
			return
		}
		if generation != of || holder != whose {
			of, whose, dropped = generation, holder, 0
		}
		var sent time.Duration
		renew := func(to rpc.Node, ctx context.Context, req *clusterpb.LeaseRequest) (*clusterpb.LeaseReply, error) {
			sent = hostinfo.BootTime()
			reply, err := to.Lease(ctx, req)
			if fault.LeaseFromAnswer {
				sent = hostinfo.BootTime()
			}
			return reply, err
		}
		ctx, cancel := context.WithTimeout(c.alive, rpc.AttemptTimeout)
		reply, err := rpc.Ask(ctx, c.router, renew, &clusterpb.LeaseRequest{
			Session: uint64(holder.Session), Client: holder.Client, Generation: generation, Dropped: dropped,
		})
		cancel()
		switch {
		case c.alive.Err() != nil:
		case err != nil:
			c.leases.Clear() // it is over, or will be soon
			return
		case !reply.GetKnown():
			c.leases.Lose(holder, generation)
		default:
			c.leases.Drop(inodesOf(reply.GetDrop())...)
			dropped = max(dropped, reply.GetNumber())
			if reply.GetExtended() {
				c.leases.Extend(holder, generation, sent)
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

// giveBack tells the leader that nothing is held any more, so that no change waits for this mount. If it does not come to know, one
// may wait until the lease is over.
func (c *Client) giveBack(holder lease.Holder, generation uint64) {
	if !c.leases.Clear() {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, lease.Duration)
	defer cancel()
	_, err := rpc.Ask(ctx, c.router, rpc.Node.Lease, &clusterpb.LeaseRequest{
		Session: uint64(holder.Session), Client: holder.Client, Generation: generation, Release: true,
	})
	if err != nil {
		c.logger.Debug("a lease was not given back", "error", err)
	}
}
