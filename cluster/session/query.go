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

// Query answers from the state as it is after everything that was acknowledged before, and nothing that a call which was given up
// before may still change (see unsettled). An error wraps
// context.DeadlineExceeded (see Create), or why ctx has ended. The result may be shared: nobody changes it.
func (c *Client) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	before := c.abandoned.list() // one of them may come between the answer and the look at it
	if len(before) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.withTimeout(ctx, commandRequest) // of all that is asked for it
		defer cancel()
	}
	result, err := c.ask(ctx, query)
	if call := mayChange(before, query, result); err == nil && call != nil {
		return c.askAgain(ctx, newest(query), call)
	}
	return result, err
}

// askAgain asks once a call is settled that may have changed what was answered.
func (c *Client) askAgain(ctx context.Context, query *storepb.Query, call *abandonedCall) (result *storepb.Result, err error) {
	for call != nil {
		if err := c.awaitCancelled(ctx, call); err != nil {
			return nil, fmt.Errorf("what was given up before is not settled: %w", err)
		}
		before := c.abandoned.list()
		if result, err = c.ask(ctx, query); err != nil {
			return nil, err
		}
		call = mayChange(before, query, result)
	}
	return result, nil
}

// mayChange answers one of the calls that may still change what a query was answered; nil: there is none. What is told of the cluster
// as a whole counts for nothing here, and of an inode that a call would change only if the mount could foresee it.
func mayChange(calls []*abandonedCall, query *storepb.Query, result *storepb.Result) *abandonedCall {
	if len(calls) == 0 {
		return nil
	}
	told, keyed := namespace.Keys(query, result)
	if lock := query.GetGetLock(); lock != nil { // which is not leased, for there is more to it than its inode
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

// newest is a query that only the state as it is now can answer.
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
	if query.GetAwaitLock() == nil { // whose caller waits anyway, and asks again
		if err := c.checkAvailable(anyRequest); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.withTimeout(ctx, anyRequest)
	defer cancel()
	result, err := c.queryLeasing(ctx, question, query)
	if err == nil && query.GetSince() == 0 && query.GetAwaitLock() == nil { // which one node may answer by itself
		c.recordReply(anyRequest)
	}
	return result, err
}

// queryProbing answers a query whose confirmation is up to this client if a voter to probe is known, to the leader if not.
func (c *Client) queryProbing(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	if req.GetQuery().GetSince() != 0 { // mostly answered without a majority's word
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
		c.voterProbe.forget(node) // the leader has asked for more
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

// query asks. wants is who wants a lease on the answer, if anybody does.
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
	return questionOf(query)
}

// questionOf is what a query asks, whatever that is; empty: it cannot be written down.
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
