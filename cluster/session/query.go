package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Query answers from a state which includes all acknowledged changes, and which no abandoned call can change
// (see pendingCalls). An error wraps context.DeadlineExceeded (see Create), or is the error of ctx. The
// result may be shared: do not change it.
func (c *Client) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	before := c.abandoned.list() // a call may be settled between the answer and the check
	if len(before) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.withTimeout(ctx, commandRequest) // for all attempts together
		defer cancel()
	}
	result, err := c.ask(ctx, query)
	if call := mayChange(before, query, result); err == nil && call != nil {
		return c.askAgain(ctx, newest(query), call)
	}
	return result, err
}

// askAgain repeats a query after the end of a call which may have changed the answer.
func (c *Client) askAgain(ctx context.Context, query *storepb.Query, call *abandonedCall) (result *storepb.Result, err error) {
	for call != nil {
		if err := c.awaitCancelled(ctx, call); err != nil {
			return nil, fmt.Errorf("an earlier abandoned call is not settled: %w", err)
		}
		before := c.abandoned.list()
		if result, err = c.ask(ctx, query); err != nil {
			return nil, err
		}
		call = mayChange(before, query, result)
	}
	return result, nil
}

// mayChange returns an abandoned call which may change the answer to a query; nil: there is none. Answers
// about the whole cluster never count. If a call has predicted inodes, only these count.
func mayChange(calls []*abandonedCall, query *storepb.Query, result *storepb.Result) *abandonedCall {
	if len(calls) == 0 {
		return nil
	}
	told, keyed := namespace.Keys(query, result)
	if lock := query.GetGetLock(); lock != nil { // not leased: it depends on more than its inode
		told, keyed = inodesOf([]uint64{lock.GetParent(), lock.GetIno(), result.GetAttr().GetIno()}), true
		for _, name := range result.GetObservations() {
			told = append(told, ids.Inode(name.GetParent()))
		}
	}
	if !keyed {
		return nil
	}
	for _, call := range calls {
		if call.anything || slices.ContainsFunc(told, func(ino ids.Inode) bool { return slices.Contains(call.changes, ino) }) {
			return call
		}
	}
	return nil
}

// newest returns a query for the latest state only.
func newest(query *storepb.Query) *storepb.Query {
	query = proto.CloneOf(query)
	query.Since = 0
	return query
}

func (c *Client) awaitCancelled(ctx context.Context, call *abandonedCall) error {
	if err := c.checkAvailable(commandRequest); err != nil {
		return err
	}
	select {
	case <-call.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return errClosing
	}
}

func (c *Client) ask(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if refused := c.notYet(query); refused != nil {
		return refused, nil
	}
	question := c.question(query)
	if question != "" {
		if result := c.leases.Get(question, hostinfo.BootTime); result != nil {
			return result, nil
		}
	}
	if near := c.local.Load(); near != nil {
		if result := (*near).QuerySince(query); result != nil {
			return result, nil
		}
	}
	if query.GetAwaitLock() == nil { // its caller waits anyway, and retries
		if err := c.checkAvailable(anyRequest); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.withTimeout(ctx, anyRequest)
	defer cancel()
	result, err := c.queryLeasing(ctx, question, query)
	if err == nil && query.GetSince() == 0 && query.GetAwaitLock() == nil { // a single node may answer these
		c.recordReply(anyRequest)
	}
	return result, err
}

// queryProbing lets this client confirm the answer with a probe of a voter. Without a known voter, the leader
// confirms it.
func (c *Client) queryProbing(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if req.GetQuery().GetSince() != 0 { // usually answered without a quorum
		return c.execute(ctx, req)
	}
	node, id, instance := c.voterProbe.get(c.ctx, c.router.Entries)
	if node == nil {
		return c.execute(ctx, req)
	}
	asked, cancel := context.WithTimeout(ctx, rpc.ProbeTimeout)
	defer cancel()
	word := make(chan ids.Term, 1)
	go func() {
		reply, err := node.Probe(asked, &clusterpb.ProbeRequest{})
		if err != nil || reply.GetId() != id || reply.GetInstance() != instance || reply.GetLeads() || !c.cluster.is(reply.GetCluster()) {
			word <- 0
			return
		}
		word <- ids.Term(reply.GetTerm())
	}()
	req.Probed, req.ProbedInstance = id, instance
	reply, err := c.execute(ctx, req)
	if err == nil && reply.GetTerm() == 0 {
		c.voterProbe.forget(node) // the leader has asked other voters, too
	}
	if err != nil || reply.GetTerm() == 0 {
		return reply, err
	}
	select {
	case term := <-word:
		if term == ids.Term(reply.GetTerm()) {
			return reply, nil
		}
	case <-time.After(rpc.FastProbeTimeout):
	}
	c.voterProbe.forget(node)
	req.Probed = ""
	return c.execute(ctx, req)
}

// query sends a query. wants requests a lease on the answer.
func (c *Client) query(ctx context.Context, query *storepb.Query, wants lease.Request) (*clusterpb.ExecuteReply, error) {
	request := &clusterpb.ExecuteRequest{
		Request: &clusterpb.ExecuteRequest_Query{Query: query},
		Lease:   uint64(wants.Session), Client: wants.Client, Spent: wants.Retired, Asked: wants.Asked,
	}
	if near := c.local.Load(); near != nil {
		voter, instance, term := (*near).TermReport()
		request.Voter, request.VoterInstance, request.Term = voter, uint64(instance), uint64(term)
		return c.execute(ctx, request)
	}
	return c.queryProbing(ctx, request)
}

// question returns the key of a query whose answer may be leased (package lease); empty: not leasable.
func (c *Client) question(query *storepb.Query) string {
	switch query.GetQuery().(type) {
	case *storepb.Query_Lookup, *storepb.Query_GetAttr, *storepb.Query_Read, *storepb.Query_ReadDir:
	default:
		return ""
	}
	if !c.givesLeases.Load() {
		return ""
	}
	return questionOf(query)
}

// questionOf returns the key of any query; empty: it cannot be encoded.
func questionOf(query *storepb.Query) string {
	since := query.Since
	query.Since = 0
	question, err := proto.MarshalOptions{Deterministic: true}.Marshal(query)
	query.Since = since
	if err != nil {
		return ""
	}
	return string(question)
}

func (c *Client) holder() lease.Holder {
	session := c.lastSession()
	if session == 0 {
		return lease.Holder{}
	}
	return lease.Holder{Session: session, Client: c.number}
}

// queryLeasing sends a query, and stores a leased answer. The stored answer has no command index, as others
// may have been applied since.
func (c *Client) queryLeasing(ctx context.Context, question string, query *storepb.Query) (*storepb.Result, error) {
	if question == "" {
		reply, err := c.query(ctx, query, lease.Request{})
		return reply.GetResult(), err
	}
	holder := c.holder()
	ticket, wants := c.leases.Ask(holder, question, hostinfo.BootTime())
	var request lease.Request
	if wants {
		request = lease.Request{Holder: holder, Retired: ticket.Retired, Asked: ticket.Position}
	}
	reply, err := c.query(ctx, query, request)
	if err != nil || reply.GetLease() == 0 || holder != c.holder() {
		return reply.GetResult(), err
	}
	inodes, _ := namespace.Keys(query, reply.GetResult())
	kept := proto.Clone(reply.GetResult()).(*storepb.Result)
	kept.Index = 0
	c.keep(ticket, reply.GetLease(), kept, inodes, time.Duration(reply.GetLeaseLasts()))
	return reply.GetResult(), nil
}
