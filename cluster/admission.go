package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// Join makes a node a member without a vote, which gets one once it has caught up, and answers when it has: NOT_DONE means that
// it is to ask again, and says why.
func (n *Node) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
	return n.welcome(ctx, req.GetMember()), nil
}

func (n *Node) welcome(ctx context.Context, member *storepb.Member) *clusterpb.AdminReply {
	if err := checkMember(member); err != nil {
		return refuseJoin(storepb.Code_INVALID, err.Error())
	}
	term, leader := n.awaitLeader(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if n.cfg.RaftAddress == "" {
		return refuseJoin(storepb.Code_INVALID, fmt.Sprintf("%s runs alone: it has no raft address", n.id.Name))
	}
	id := member.GetId()
	known := n.raftServer(id)
	if known != nil && known.Suffrage == raft.Voter {
		return n.joinAgain(ctx, known, member)
	}
	if reason := n.newcomers.refused(id, readClocks().mono); reason != "" {
		return refuseJoin(storepb.Code_NOT_PERMITTED, reason)
	}
	if err := n.callBack(ctx, member); err != nil {
		n.logger.Warn("a node that wants to join is not reached", "name", member.GetName(), "id", id, "error", err)
		if n.newcomers.miss(id, readClocks().mono) {
			return refuseJoin(storepb.Code_NOT_PERMITTED, fmt.Sprintf(
				"the leader %s cannot reach %s (%v): start it with addresses at which the others reach it", n.id.Name, member.GetName(), err))
		}
		return notYet(err.Error())
	}
	n.newcomers.reached(id)
	reply := n.administer(ctx, func() (*storepb.Result, error) { return n.try(ctx, member) })
	if reply.GetOutcome() != clusterpb.Outcome_DONE || reply.GetResult().GetCode() != storepb.Code_OK {
		return reply
	}
	return n.awaitTrial(ctx, id)
}

func refuseJoin(code storepb.Code, message string) *clusterpb.AdminReply {
	return &clusterpb.AdminReply{Result: &storepb.Result{Code: code, Message: message}}
}

func notYet(message string) *clusterpb.AdminReply {
	return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_DONE, Result: &storepb.Result{Message: message}}
}

// joinAgain records the present addresses of a voter, which is what it stays whether it is reached or not.
func (n *Node) joinAgain(ctx context.Context, known *raft.Server, member *storepb.Member) *clusterpb.AdminReply {
	if string(known.Address) != member.GetRaftAddress() {
		return refuseJoin(storepb.Code_INVALID, fmt.Sprintf("%s is a member with the raft address %s, which cannot change to %s",
			member.GetName(), known.Address, member.GetRaftAddress()))
	}
	return n.administer(ctx, func() (*storepb.Result, error) {
		if err := n.confirmConfiguration(ctx); err != nil {
			return nil, err
		}
		return n.proposeCluster(ctx, setMember(member))
	})
}

// try puts a newcomer into raft's configuration. It is recorded as a member first, because a voter whose API address nobody
// knows could not confirm a leader.
func (n *Node) try(ctx context.Context, member *storepb.Member) (*storepb.Result, error) {
	if reason := n.newcomers.refused(member.GetId(), readClocks().mono); reason != "" { // meanwhile
		return &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: reason}, nil
	}
	server := raft.Server{
		Suffrage: raft.Nonvoter, ID: raft.ServerID(member.GetId()), Address: raft.ServerAddress(member.GetRaftAddress()),
	}
	servers := n.raftServers()
	taken := slices.IndexFunc(servers, func(s raft.Server) bool { return s.Address == server.Address && s.ID != server.ID })
	if taken >= 0 {
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"the raft address %s is that of the member %s (id %s); remove that one first",
			server.Address, n.member(string(servers[taken].ID)).GetName(), servers[taken].ID)}, nil
	}
	result, err := n.proposeCluster(ctx, setMember(member))
	if err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	if known := n.raftServer(member.GetId()); known == nil || known.Address != server.Address {
		if err := waitConfigChange(ctx, n.raft.AddNonvoter(server.ID, server.Address, 0, configChangeTimeout)); err != nil {
			return nil, err
		}
		n.logger.Info("joining", "name", member.GetName(), "id", member.GetId())
	}
	n.newcomers.begin(server, readClocks().mono, n.raft.CommitIndex())
	select {
	case n.newcomers.hurry <- struct{}{}:
	default:
	}
	return &storepb.Result{}, nil
}

// awaitTrial answers whether a newcomer has become a voter.
func (n *Node) awaitTrial(ctx context.Context, id string) *clusterpb.AdminReply {
	wait, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		changed := n.newcomers.change()
		known := n.raftServer(id)
		if known != nil && known.Suffrage == raft.Voter {
			err := n.confirmConfiguration(ctx)
			return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: new(storepb.Result)}
		}
		if reason := n.newcomers.refused(id, readClocks().mono); reason != "" {
			return refuseJoin(storepb.Code_NOT_PERMITTED, reason)
		}
		select {
		case <-changed:
		case <-wait.Done():
			return notYet("it is no voter yet: " + n.newcomers.lastWord(id))
		}
	}
}

// tendNewcomers looks after those who join for as long as this node leads in a term.
func (n *Node) tendNewcomers(term uint64) {
	n.newcomers.reset()
	for wait := time.Duration(0); n.leadership.office() == term && term != 0; {
		select {
		case <-time.After(wait):
		case <-n.newcomers.hurry:
		case <-n.ctx.Done():
			return
		}
		joining := slices.DeleteFunc(n.raftServers(), func(s raft.Server) bool { return s.Suffrage == raft.Voter })
		now := readClocks().mono
		n.newcomers.keepOnly(joining, now)
		var looking sync.WaitGroup
		for _, server := range joining {
			n.newcomers.begin(server, now, n.raft.CommitIndex())
			looking.Go(func() { n.lookAt(server) })
		}
		looking.Wait()
		wait = joinLook
		if len(joining) == 0 {
			n.forgetStrangers()
			wait = idleLook
		}
	}
}

// lookAt sees how far a newcomer is.
func (n *Node) lookAt(server raft.Server) {
	id := string(server.ID)
	member := n.member(id)
	applied, err := n.askNewcomer(n.ctx, member)
	ready, reason := n.newcomers.judge(id, readClocks().mono, applied, n.raft.CommitIndex(), err)
	switch {
	case ready:
		if err = n.callBack(n.ctx, member); err == nil {
			err = n.admit(server)
		}
		if err != nil {
			n.newcomers.held(id, err)
		}
	case reason != "":
		n.drop(server, fmt.Sprintf("the leader %s dropped it: %s", n.id.Name, reason))
	}
}

// admit gives a newcomer its vote.
func (n *Node) admit(server raft.Server) error {
	n.adminMu.Lock()
	defer n.adminMu.Unlock()
	if !n.isNewcomer(server) {
		return nil
	}
	err := waitConfigChange(n.ctx, n.raft.AddVoter(server.ID, server.Address, 0, configChangeTimeout))
	if err == nil {
		n.logger.Info("joined", "name", n.member(string(server.ID)).GetName(), "id", server.ID)
		n.newcomers.wake()
	}
	return err
}

// drop takes a newcomer out that has never become a voter.
func (n *Node) drop(server raft.Server, reason string) {
	n.adminMu.Lock()
	defer n.adminMu.Unlock()
	if !n.isNewcomer(server) {
		return
	}
	id := string(server.ID)
	n.logger.Warn("a node that wanted to join is dropped", "name", n.member(id).GetName(), "id", id, "reason", reason)
	if err := n.takeOut(n.ctx, id, reason); err != nil {
		n.logger.Warn("it is not dropped yet", "id", id, "error", err)
	}
}

// isNewcomer tells whether a server is still the same in raft's configuration and has no vote yet.
func (n *Node) isNewcomer(server raft.Server) bool {
	known := n.raftServer(string(server.ID))
	return known != nil && *known == server
}

// takeOut removes a server from raft's configuration and from the members. reason is for one that does not know that it has
// joined: it goes on asking until it hears one.
func (n *Node) takeOut(ctx context.Context, id, reason string) error {
	if known := n.raftServer(id); known != nil {
		if err := waitConfigChange(ctx, n.raft.RemoveServer(known.ID, 0, configChangeTimeout)); err != nil {
			return err
		}
		n.newcomers.refuse(id, reason, readClocks().mono)
		n.newcomers.wake()
	}
	if id != n.id.ID { // a leader that removed itself is none any more; its successor tidies up
		n.proposeOwn(&storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: id}}})
	}
	return nil
}

// forgetStrangers removes members that are not in raft's configuration: a leader that removed itself could not, and neither could
// one that was deposed in the middle of a change. One that is under way here has its member there before.
func (n *Node) forgetStrangers() {
	if !n.adminMu.TryLock() {
		return
	}
	defer n.adminMu.Unlock()
	servers := n.raftServers()
	for _, member := range n.members() {
		if !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == member.GetId() }) {
			n.proposeOwn(&storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: member.GetId()}}})
		}
	}
}
