package session

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// executeLeasing executes a command. The leader adds leased answers to the queries which usually follow. The
// mount first drops the leased results which the command probably changes, so the leader need not revoke
// them.
func (c *Client) executeLeasing(ctx context.Context, request *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	changes, next := predict(request.GetCommand().GetOp())
	if len(changes) == 0 || !c.givesLeases.Load() {
		return c.execute(ctx, request)
	}
	c.leases.Changing()
	defer c.leases.Changed()
	for _, ino := range changes {
		request.GivenUp = append(request.GivenUp, uint64(ino))
	}
	var holder lease.Holder
	var ticket lease.Ticket // of the last attempt: it retires the tickets of earlier ones
	reply, err := c.executeEach(ctx, request, func() {
		var again []string
		holder = c.holder()
		ticket, again = c.leases.Change(holder, hostinfo.BootTime(), changes...)
		next = addQuestions(next, again)
		request.Lease, request.Client, request.Spent, request.Asked = uint64(holder.Session), holder.Client, ticket.Retired, ticket.Position
		request.Also = next
	})
	if err == nil && holder == c.holder() {
		c.storePrefetched(ticket, next, reply)
	}
	return reply, err
}

// addQuestions adds questions to a command, up to the limit.
func addQuestions(next []*storepb.Query, questions []string) []*storepb.Query {
	var known []string
	for _, query := range next {
		known = append(known, questionOf(query))
	}
	for _, question := range questions {
		query := new(storepb.Query)
		if len(next) < lease.MaxWithCommand && !slices.Contains(known, question) && proto.Unmarshal([]byte(question), query) == nil {
			next = append(next, query)
		}
	}
	return next
}

func (c *Client) storePrefetched(ticket lease.Ticket, next []*storepb.Query, reply *clusterpb.ExecuteReply) {
	for i, answer := range reply.GetAlso() {
		if i >= len(next) || answer.GetLease() == 0 {
			continue
		}
		query := lease.ForCreated(next[i], reply.GetResult())
		if inodes, keyed := namespace.Keys(query, answer.GetResult()); keyed {
			c.keep(ticket.For(questionOf(query)), answer.GetLease(), answer.GetResult(), inodes, time.Duration(answer.GetLeaseLasts()))
		}
	}
}

// isUnpredicted reports whether an operation may change inodes unknown to the mount. This is a removal of a
// name without the inode which the caller's kernel has looked up. Root's removals may still hit a newer
// inode: answers through open descriptors are not held back for this.
func isUnpredicted(op *storepb.Op) bool {
	switch op := op.GetOp().(type) {
	case *storepb.Op_Unlink:
		return isUnknown(op.Unlink.Judged)
	case *storepb.Op_Rename:
		return isUnknown(op.Rename.Judged) || isUnknown(op.Rename.NewJudged)
	}
	return false
}

// isUnknown reports whether the expected inode is missing.
func isUnknown(judged *uint64) bool { return judged == nil || ids.Inode(*judged) == ids.UnknownInode }

// predict returns the inodes which an operation changes, as far as known, and the queries which the kernel
// sends next. The kernel checks the directory's permissions, looks up the name, and reads attributes. Inode 0
// is the result's (lease.ForCreated). Missing entries only cost round trips: the leader revokes all leases of
// changed inodes.
func predict(op *storepb.Op) (changes []ids.Inode, next []*storepb.Query) {
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		changes = inodesOf([]uint64{op.Create.GetParent()})
		next = append(lookupQueries(op.Create.GetParent(), op.Create.GetName()), getAttr(0))
	case *storepb.Op_Link:
		changes = inodesOf([]uint64{op.Link.GetParent(), op.Link.GetIno()})
		next = append(lookupQueries(op.Link.GetParent(), op.Link.GetName()), getAttr(op.Link.GetIno()))
	case *storepb.Op_Unlink:
		changes = inodesOf([]uint64{op.Unlink.GetParent(), op.Unlink.GetJudged()})
		next = lookupQueries(op.Unlink.GetParent(), op.Unlink.GetName())
	case *storepb.Op_Rename:
		r := op.Rename
		changes = inodesOf([]uint64{r.GetParent(), r.GetNewParent(), r.GetJudged(), r.GetNewJudged()})
		next = append(lookupQueries(r.GetParent(), r.GetName()), lookupOf(r.GetNewParent(), r.GetNewName()))
		if r.GetNewParent() != r.GetParent() {
			next = append(next, getAttr(r.GetNewParent()))
		}
	case *storepb.Op_SetContent:
		changes = inodesOf([]uint64{op.SetContent.GetIno(), op.SetContent.GetName().GetParent()}) // the name may become a lock
		if name := op.SetContent.GetName(); name != nil {
			next = lookupQueries(name.GetParent(), name.GetName())
		}
		next = append(next, getAttr(op.SetContent.GetIno()), &storepb.Query{Query: &storepb.Query_Read{Read: new(storepb.Read)}})
	case *storepb.Op_SetAttr:
		changes = inodesOf([]uint64{op.SetAttr.GetIno()})
		next = append(next, getAttr(op.SetAttr.GetIno()))
	case *storepb.Op_SetXattr:
		changes = inodesOf([]uint64{op.SetXattr.GetIno()})
	case *storepb.Op_RemoveXattr:
		changes = inodesOf([]uint64{op.RemoveXattr.GetIno()})
	}
	slices.Sort(changes)
	changes = slices.Compact(changes)
	return slices.DeleteFunc(changes, func(ino ids.Inode) bool { return ino == 0 }), next
}

// lookupQueries returns the kernel's queries before each call with a name.
func lookupQueries(parent uint64, name []byte) []*storepb.Query {
	return []*storepb.Query{getAttr(parent), lookupOf(parent, name)}
}

func lookupOf(parent uint64, name []byte) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: parent, Name: name}}}
}

func getAttr(ino uint64) *storepb.Query {
	return &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}
}
