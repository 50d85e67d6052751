package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// admission is how a leader makes a node that wants to join a voter.
type admission struct {
	ctx        context.Context // ends when the node is closed
	alone      bool            // it has no port, so nobody can join
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	changes    *changes
	newcomers  *newcomers
	expulsion  *expulsion
	caller     *caller
	moves      *moves
	instances  *instances
	logger     *slog.Logger
}

// join makes a node a member without a vote, which gets one once it has caught up, and answers when it has: NOT_DONE means that
// it is to ask again, and says why. Who joins again was a member before, and does not become one anew.
func (a *admission) join(ctx context.Context, member *storepb.Member, again bool) *clusterpb.AdminReply {
	if err := checkMember(member); err != nil {
		return refuseJoin(storepb.Code_INVALID, err.Error())
	}
	if known := a.members.get(member.GetId()); known != nil && known.GetName() != member.GetName() { // certificates are of names
		return refuseJoin(storepb.Code_INVALID, fmt.Sprintf("the member with the id %s is called %s", member.GetId(), known.GetName()))
	}
	refused := a.instances.follow(ctx, raft.ServerID(member.GetId()), raft.ServerAddress(member.GetAddress()), ids.Instance(member.GetInstance()))
	if refused == nil {
		a.moves.meet(ctx, member)
	}
	term, leader := a.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if a.alone {
		return refuseJoin(storepb.Code_INVALID, fmt.Sprintf("%s runs alone: it has no address", a.members.dir.Name))
	}
	if refused != nil {
		return a.refuseProcess(ctx, refused)
	}
	id := member.GetId()
	known := a.raft.Server(id)
	if known != nil && (known.Suffrage == raft.Voter || a.members.get(id).GetNonvoter()) {
		return a.joinAgain(ctx, known, member)
	}
	if known == nil && again {
		return refuseJoin(storepb.Code_NOT_PERMITTED, errRemoved.Error())
	}
	if reason := a.newcomers.refused(id, readClocks().mono); reason != "" {
		return refuseJoin(storepb.Code_NOT_PERMITTED, reason)
	}
	if err := a.caller.callBack(ctx, member); err != nil {
		a.logger.Warn("a node that wants to join is not reached", "name", member.GetName(), "id", id, "error", err)
		if a.newcomers.miss(id, readClocks().mono) {
			return refuseJoin(storepb.Code_NOT_PERMITTED, fmt.Sprintf(
				"the leader %s cannot reach %s (%v): start it with an address at which the others reach it", a.members.dir.Name, member.GetName(), err))
		}
		return notYet(err.Error())
	}
	a.newcomers.reached(id)
	reply := a.changes.administer(ctx, func() (*storepb.Result, error) { return a.try(ctx, member) })
	if reply.GetOutcome() != clusterpb.Outcome_DONE || reply.GetResult().GetCode() != storepb.Code_OK {
		return reply
	}
	if a.members.get(id).GetNonvoter() {
		return reply
	}
	return a.awaitTrial(ctx, id)
}

// refuseProcess answers a process that is not followed. It is told to end only by the present leader.
func (a *admission) refuseProcess(ctx context.Context, refused error) *clusterpb.AdminReply {
	conflict := new(conflictError)
	if !errors.As(refused, &conflict) || a.changes.confirmConfiguration(ctx) != nil {
		return notYet(refused.Error())
	}
	reply := refuseJoin(storepb.Code_NOT_PERMITTED, refused.Error())
	reply.Follows = uint64(conflict.follows)
	return reply
}

func checkMember(m *storepb.Member) error {
	if !consensus.ValidName(m.GetName()) || m.GetId() == "" {
		return fmt.Errorf("a member needs a name and an id, not %q and %q", m.GetName(), m.GetId())
	}
	return checkAdvertised(m.GetAddress())
}

func refuseJoin(code storepb.Code, message string) *clusterpb.AdminReply {
	return &clusterpb.AdminReply{Result: &storepb.Result{Code: code, Message: message}}
}

func notYet(message string) *clusterpb.AdminReply {
	return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_DONE, Result: &storepb.Result{Message: message}}
}

// joinAgain records the name and address of a member, whose vote stays what it is whether it is reached or not. Its address changes
// only if it is there.
func (a *admission) joinAgain(ctx context.Context, known *raft.Server, member *storepb.Member) *clusterpb.AdminReply {
	address := raft.ServerAddress(member.GetAddress())
	if string(known.ID) == a.members.dir.ID {
		if member.GetAddress() != a.members.dir.Address {
			return refuseJoin(storepb.Code_INVALID, fmt.Sprintf("%s is this node, whose address is %s", member.GetName(), a.members.dir.Address))
		}
	} else if known.Address != address {
		if err := a.caller.callBack(ctx, member); err != nil {
			return notYet(err.Error())
		}
	}
	if inTheWay := a.moves.inTheWay(address, known.ID); inTheWay != "" {
		return notYet(inTheWay)
	}
	return a.changes.administer(ctx, func() (*storepb.Result, error) {
		if err := a.changes.confirmConfiguration(ctx); err != nil {
			return nil, err
		}
		if recorded := a.recorded(member); !proto.Equal(a.members.get(member.GetId()), recorded) {
			if result, err := a.changes.propose(ctx, setMember(recorded)); err != nil || result.GetCode() != storepb.Code_OK {
				return result, err
			}
		}
		return new(storepb.Result), a.moves.writeDown(ctx, member.GetId(), address)
	})
}

// recorded is what is to be known of a member. Whether it is to have a vote it says itself only when it comes.
func (a *admission) recorded(member *storepb.Member) *storepb.Member {
	recorded := &storepb.Member{
		Id: member.GetId(), Name: member.GetName(), Address: member.GetAddress(), Nonvoter: member.GetNonvoter(),
		OldestVersion: member.GetOldestVersion(), NewestVersion: member.GetNewestVersion(),
		Instance: member.GetInstance(),
	}
	if known := a.members.get(member.GetId()); known != nil {
		recorded.Nonvoter = known.GetNonvoter()
	}
	return recorded
}

// try puts a newcomer into raft's configuration. It is recorded as a member first, because a voter whose address nobody
// knows could not confirm a leader.
func (a *admission) try(ctx context.Context, member *storepb.Member) (*storepb.Result, error) {
	if reason := a.newcomers.refused(member.GetId(), readClocks().mono); reason != "" { // meanwhile
		return &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: reason}, nil
	}
	server := raft.Server{
		Suffrage: raft.Nonvoter, ID: raft.ServerID(member.GetId()), Address: raft.ServerAddress(member.GetAddress()),
	}
	if other := a.moves.holder(server.Address, server.ID); other != nil {
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"the address %s is that of the member %s (id %s); remove that one first",
			server.Address, a.members.get(string(other.ID)).GetName(), other.ID)}, nil
	}
	result, err := a.changes.propose(ctx, setMember(a.recorded(member)))
	if err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	if known := a.raft.Server(member.GetId()); known == nil || known.Address != server.Address {
		if err := consensus.Await(ctx, a.raft.AddNonvoter(server.ID, server.Address, 0, configChangeTimeout)); err != nil {
			return nil, err
		}
		a.logger.Info("joining", "name", member.GetName(), "id", member.GetId())
	}
	a.newcomers.begin(server, readClocks().mono, ids.Index(a.raft.CommitIndex()))
	select {
	case a.newcomers.hurry <- struct{}{}:
	default:
	}
	return &storepb.Result{}, nil
}

// awaitTrial answers whether a newcomer has become a voter.
func (a *admission) awaitTrial(ctx context.Context, id string) *clusterpb.AdminReply {
	wait, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		changed := a.newcomers.change()
		known := a.raft.Server(id)
		if known != nil && known.Suffrage == raft.Voter {
			err := a.changes.confirmConfiguration(ctx)
			return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: new(storepb.Result)}
		}
		if reason := a.newcomers.refused(id, readClocks().mono); reason != "" {
			return refuseJoin(storepb.Code_NOT_PERMITTED, reason)
		}
		select {
		case <-changed:
		case <-wait.Done():
			return notYet("it is no voter yet: " + a.newcomers.lastWord(id))
		}
	}
}

// tend looks after those who join for as long as this node leads in a term.
func (a *admission) tend(term ids.Term) {
	a.newcomers.reset()
	for wait := time.Duration(0); a.leadership.term() == term && term != 0; {
		select {
		case <-time.After(wait):
		case <-a.newcomers.hurry:
		case <-a.ctx.Done():
			return
		}
		joining := slices.DeleteFunc(a.raft.Servers(), func(s raft.Server) bool {
			return s.Suffrage == raft.Voter || a.members.get(string(s.ID)).GetNonvoter()
		})
		now := readClocks().mono
		a.newcomers.keepOnly(joining, now)
		var looking sync.WaitGroup
		for _, server := range joining {
			a.newcomers.begin(server, now, ids.Index(a.raft.CommitIndex()))
			looking.Go(func() { a.lookAt(server) })
		}
		looking.Wait()
		a.expulsion.forgetStrangers(a.ctx)
		wait = joinInterval
		if len(joining) == 0 {
			wait = idleInterval
		}
	}
}

// lookAt sees how far a newcomer is.
func (a *admission) lookAt(server raft.Server) {
	id := string(server.ID)
	member := a.members.get(id)
	applied, err := a.caller.askNewcomer(a.ctx, member)
	ready, reason := a.newcomers.judge(id, readClocks().mono, applied, ids.Index(a.raft.CommitIndex()), err)
	switch {
	case ready:
		if err = a.caller.callBack(a.ctx, member); err == nil {
			err = a.admit(server, readClocks().mono)
		}
		if err != nil {
			a.newcomers.held(id, err)
		}
	case reason != "":
		a.drop(server, fmt.Sprintf("the leader %s dropped it: %s", a.members.dir.Name, reason))
	}
}

var errOthersTurn = errors.New("other changes of the members are under way")

// admit gives a newcomer its vote that answered at a (monotonic) time: with another voter gone, nothing may be decided without it from
// then on. One that was asked long ago, since others had their turn, is to be asked again.
func (a *admission) admit(server raft.Server, answered time.Duration) error {
	ctx, cancel := context.WithTimeout(a.ctx, changeTimeout)
	defer cancel()
	if !a.changes.turn.take(ctx) {
		return errOthersTurn
	}
	defer a.changes.turn.pass()
	if readClocks().mono-answered > callBackTimeout {
		return errOthersTurn
	}
	if !a.isNewcomer(server) {
		return nil
	}
	err := a.raft.GiveVote(ctx, server.ID, server.Address, configChangeTimeout)
	if err == nil {
		a.logger.Info("joined", "name", a.members.get(string(server.ID)).GetName(), "id", server.ID)
		a.newcomers.wake()
	}
	return err
}

// drop takes a newcomer out that has never become a voter.
func (a *admission) drop(server raft.Server, reason string) {
	ctx, cancel := context.WithTimeout(a.ctx, changeTimeout)
	defer cancel()
	if !a.changes.turn.take(ctx) {
		return
	}
	defer a.changes.turn.pass()
	if !a.isNewcomer(server) {
		return
	}
	id := string(server.ID)
	a.logger.Warn("a node that wanted to join is dropped", "name", a.members.get(id).GetName(), "id", id, "reason", reason)
	err := a.expulsion.takeOut(ctx, id, reason)
	if err == nil {
		err = a.expulsion.forget(ctx, nil, id, nil)
	}
	if err != nil {
		a.logger.Warn("it is not dropped yet", "id", id, "error", err)
	}
}

// isNewcomer tells whether a server is still the same in raft's configuration, and is to get a vote.
func (a *admission) isNewcomer(server raft.Server) bool {
	known := a.raft.Server(string(server.ID))
	return known != nil && *known == server && !a.members.get(string(server.ID)).GetNonvoter()
}
