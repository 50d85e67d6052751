package cluster

import (
	"context"
	"errors"
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
	revokes   bool // hosts have certificates
}

// remove takes a member out by its name, or by its raft id, and its host with it: it is not let in any more. It goes on where a leader was
// cut off that had taken the member out.
func (e *expulsion) remove(ctx context.Context, by *storepb.Caller, name string) *clusterpb.AdminReply {
	return e.changes.administer(ctx, func() (*storepb.Result, error) {
		id := e.members.find(name)
		host := e.members.get(id).GetName()
		known := e.raft.Server(id)
		switch {
		case id == "" && e.isServer(name):
			return e.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: revokeHost(name)})
		case id == "":
			return &storepb.Result{
				Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("no member is named %q; see `lockfs member list`", name),
			}, nil
		case known != nil && known.Suffrage == raft.Voter && len(e.raft.VoterIDs()) == 1:
			return &storepb.Result{
				Code: storepb.Code_NOT_PERMITTED, Message: fmt.Sprintf("%q is the only member; stop it instead", name),
			}, nil
		}
		if e.revokes && id == e.members.dir.ID { // who does it must still lead afterwards
			err := consensus.Await(ctx, e.raft.LeadershipTransfer())
			return nil, errors.Join(raftstore.ErrNotDone, err)
		}
		if err := e.takeOut(ctx, by, id, errRemoved.Error()); err != nil || !e.revokes || host == "" {
			return &storepb.Result{}, err
		}
		_, err := e.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: revokeHost(host)})
		return &storepb.Result{}, err
	})
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
