package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// expulsion is how a member is taken out, whoever wants it.
type expulsion struct {
	raft      *consensus.Raft
	members   *members
	changes   *changes
	newcomers *newcomers
	suffrage  *suffrage
	revokes   bool // hosts have certificates
}

// remove takes a member out by its name, or by its raft id, and its host with it: it is not let in any more. One that it is replaced
// by has to be a voter first, so that there are never fewer. It goes on where a leader was cut off that had taken the member out.
func (e *expulsion) remove(ctx context.Context, req *clusterpb.RemoveRequest) *clusterpb.AdminReply {
	if replacement := req.GetReplacement(); replacement != "" {
		if e.members.find(replacement) == e.members.find(req.GetName()) {
			return &clusterpb.AdminReply{Result: &storepb.Result{
				Code: storepb.Code_INVALID, Message: fmt.Sprintf("%q cannot replace itself", replacement),
			}}
		}
		reply := e.suffrage.set(ctx, &clusterpb.SetVoteRequest{Name: replacement, Vote: true, Caller: req.GetCaller()})
		if reply.GetOutcome() != clusterpb.Outcome_DONE || reply.GetResult().GetCode() != storepb.Code_OK {
			return reply
		}
	}
	return e.changes.administer(ctx, func() (*storepb.Result, error) {
		if replacement := req.GetReplacement(); replacement != "" && !e.votes(replacement) {
			return nil, raftstore.ErrNotDone // somebody has taken its vote meanwhile
		}
		id := e.members.find(req.GetName())
		known := e.raft.Server(id)
		switch {
		case id == "" && e.isServer(req.GetName()):
			return e.changes.store.Propose(ctx, &storepb.Command{Caller: req.GetCaller(), Op: revokeHost(req.GetName())})
		case id == "" && req.GetReplacement() != "": // an earlier answer was lost
			return new(storepb.Result), nil
		case id == "":
			return noMember(req.GetName()), nil
		case known != nil && known.Suffrage == raft.Voter:
			if refused := e.suffrage.needed(id, req.GetForce()); refused != nil {
				return refused, nil
			}
		}
		if e.revokes && id == e.members.dir.ID { // who does it must still lead afterwards
			return nil, e.suffrage.handOver(ctx)
		}
		return new(storepb.Result), e.expel(ctx, req.GetCaller(), id, errRemoved.Error())
	})
}

func (e *expulsion) votes(name string) bool {
	known := e.raft.Server(e.members.find(name))
	return known != nil && known.Suffrage == raft.Voter
}

// expel takes a member out for good, with the certificate of its host.
func (e *expulsion) expel(ctx context.Context, by *storepb.Caller, id, reason string) error {
	host := e.members.get(id).GetName()
	if err := e.takeOut(ctx, by, id, reason); err != nil || !e.revokes || host == "" {
		return err
	}
	_, err := e.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: revokeHost(host)})
	return err
}

// isServer tells whether a host is in as a server.
func (e *expulsion) isServer(name string) (is bool) {
	e.raft.FSM.View(func(ns *namespace.Namespace) {
		host := ns.Admission(name)
		is = host.GetRole() == storepb.Role_SERVER && host.GetRevoked() == 0
	})
	return is
}

// takeOut removes a server from raft's configuration and from the members. reason is for one that does not know that it has
// joined: it goes on asking until it hears one.
func (e *expulsion) takeOut(ctx context.Context, by *storepb.Caller, id, reason string) error {
	if known := e.raft.Server(id); known != nil {
		if err := consensus.Await(ctx, e.raft.RemoveServer(known.ID, 0, configChangeTimeout)); err != nil {
			return err
		}
		e.newcomers.refuse(id, reason, readClocks().mono)
		e.newcomers.wake()
	}
	if id != e.members.dir.ID { // a leader that removed itself is none any more; its successor tidies up
		e.changes.proposeFor(by, &storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: id}}})
	}
	return nil
}

// forgetStrangers removes members that are not in raft's configuration: a leader that removed itself could not, and neither could
// one that was deposed in the middle of a change. One that is under way here has its member there before.
func (e *expulsion) forgetStrangers() {
	if !e.changes.mu.TryLock() {
		return
	}
	defer e.changes.mu.Unlock()
	servers := e.raft.Servers()
	for _, member := range e.members.all() {
		if !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == member.GetId() }) {
			e.changes.proposeOwn(&storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: member.GetId()}}})
		}
	}
}
