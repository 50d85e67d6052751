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

// joiner is how a leader makes a joining node a voter.
type joiner struct {
	ctx         context.Context // ends when the node is closed
	alone       bool            // no network: no other node can join
	raft        *consensus.Raft
	members     *members
	leadership  *leadership
	proposer    *proposer
	learners    *learners
	remover     *remover
	dialer      *dialer
	addressBook *addressBook
	instances   *instances
	logger      *slog.Logger
}

// join adds a node as a learner and waits until it is promoted. NOT_DONE means: ask again; the message
// says why. A node that joins again was a member before, and is not added anew.
func (j *joiner) join(ctx context.Context, member *storepb.Member, again bool) *clusterpb.AdminReply {
	if err := checkMember(member); err != nil {
		return rejectJoin(storepb.Code_INVALID, err.Error())
	}
	if known := j.members.get(member.GetId()); known != nil && known.GetName() != member.GetName() { // certificates have the name
		return rejectJoin(storepb.Code_INVALID, fmt.Sprintf("the member with the id %s is called %s", member.GetId(), known.GetName()))
	}
	refused := j.instances.follow(ctx, raft.ServerID(member.GetId()), raft.ServerAddress(member.GetAddress()), ids.Instance(member.GetInstance()))
	if refused == nil {
		j.addressBook.learn(ctx, member)
	}
	term, leader := j.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if j.alone {
		return rejectJoin(storepb.Code_INVALID, fmt.Sprintf("%s runs alone: it has no address", j.members.dir.Name))
	}
	if refused != nil {
		return j.rejectProcess(ctx, refused)
	}
	id := member.GetId()
	known := j.raft.Server(id)
	if known != nil && (known.Suffrage == raft.Voter || j.members.get(id).GetNonvoter()) {
		return j.rejoin(ctx, known, member)
	}
	if known == nil && again {
		return rejectJoin(storepb.Code_NOT_PERMITTED, errRemoved.Error())
	}
	if reason := j.learners.rejected(id, readClocks().mono); reason != "" {
		return rejectJoin(storepb.Code_NOT_PERMITTED, reason)
	}
	if err := j.dialer.dialBack(ctx, member); err != nil {
		j.logger.Warn("a node that wants to join is not reached", "name", member.GetName(), "id", id, "error", err)
		if j.learners.noteUnreachable(id, readClocks().mono) {
			return rejectJoin(storepb.Code_NOT_PERMITTED, fmt.Sprintf(
				"the leader %s cannot reach %s (%v): start it with an address at which the others reach it", j.members.dir.Name, member.GetName(), err))
		}
		return retryJoin(err.Error())
	}
	j.learners.noteReachable(id)
	reply := j.proposer.administer(ctx, func() (*storepb.Result, error) { return j.addLearner(ctx, member) })
	if reply.GetOutcome() != clusterpb.Outcome_DONE || reply.GetResult().GetCode() != storepb.Code_OK {
		return reply
	}
	if j.members.get(id).GetNonvoter() {
		return reply
	}
	return j.awaitPromotion(ctx, id)
}

// rejectProcess answers a process that this node does not follow. Only the present leader may end it.
func (j *joiner) rejectProcess(ctx context.Context, refused error) *clusterpb.AdminReply {
	conflict := new(conflictError)
	if !errors.As(refused, &conflict) || j.proposer.confirmConfiguration(ctx) != nil {
		return retryJoin(refused.Error())
	}
	reply := rejectJoin(storepb.Code_NOT_PERMITTED, refused.Error())
	reply.Follows = uint64(conflict.follows)
	return reply
}

func checkMember(m *storepb.Member) error {
	if !consensus.ValidName(m.GetName()) || m.GetId() == "" {
		return fmt.Errorf("a member needs a name and an id, not %q and %q", m.GetName(), m.GetId())
	}
	return checkAdvertised(m.GetAddress())
}

func rejectJoin(code storepb.Code, message string) *clusterpb.AdminReply {
	return &clusterpb.AdminReply{Result: &storepb.Result{Code: code, Message: message}}
}

func retryJoin(message string) *clusterpb.AdminReply {
	return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_DONE, Result: &storepb.Result{Message: message}}
}

// rejoin records the name and address of a member. Its vote stays as it is. Its address changes only if
// it answers there.
func (j *joiner) rejoin(ctx context.Context, known *raft.Server, member *storepb.Member) *clusterpb.AdminReply {
	address := raft.ServerAddress(member.GetAddress())
	if string(known.ID) == j.members.dir.ID {
		if member.GetAddress() != j.members.dir.Address {
			return rejectJoin(storepb.Code_INVALID, fmt.Sprintf("%s is this server, with the address %s", member.GetName(), j.members.dir.Address))
		}
	} else if known.Address != address {
		if err := j.dialer.dialBack(ctx, member); err != nil {
			return retryJoin(err.Error())
		}
	}
	if conflict := j.addressBook.conflict(address, known.ID); conflict != "" {
		return retryJoin(conflict)
	}
	return j.proposer.administer(ctx, func() (*storepb.Result, error) {
		if err := j.proposer.confirmConfiguration(ctx); err != nil {
			return nil, err
		}
		if recorded := j.recordOf(member); !proto.Equal(j.members.get(member.GetId()), recorded) {
			if result, err := j.proposer.propose(ctx, setMember(recorded)); err != nil || result.GetCode() != storepb.Code_OK {
				return result, err
			}
		}
		return new(storepb.Result), j.addressBook.commit(ctx, member.GetId(), address)
	})
}

// recordOf returns the record of a member. Only a new member chooses whether it gets a vote.
func (j *joiner) recordOf(member *storepb.Member) *storepb.Member {
	recorded := &storepb.Member{
		Id: member.GetId(), Name: member.GetName(), Address: member.GetAddress(), Nonvoter: member.GetNonvoter(),
		OldestVersion: member.GetOldestVersion(), NewestVersion: member.GetNewestVersion(),
		Instance: member.GetInstance(),
	}
	if known := j.members.get(member.GetId()); known != nil {
		recorded.Nonvoter = known.GetNonvoter()
	}
	return recorded
}

// addLearner adds a node to raft's configuration as a learner. Its member record comes first, because a
// voter without a known address could not confirm a leader.
func (j *joiner) addLearner(ctx context.Context, member *storepb.Member) (*storepb.Result, error) {
	if reason := j.learners.rejected(member.GetId(), readClocks().mono); reason != "" { // since the last check
		return &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: reason}, nil
	}
	server := raft.Server{
		Suffrage: raft.Nonvoter, ID: raft.ServerID(member.GetId()), Address: raft.ServerAddress(member.GetAddress()),
	}
	if other := j.addressBook.holder(server.Address, server.ID); other != nil {
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"the address %s is that of the member %s (id %s); remove that one first",
			server.Address, j.members.get(string(other.ID)).GetName(), other.ID)}, nil
	}
	result, err := j.proposer.propose(ctx, setMember(j.recordOf(member)))
	if err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	if known := j.raft.Server(member.GetId()); known == nil || known.Address != server.Address {
		if err := consensus.Await(ctx, j.raft.AddNonvoter(server.ID, server.Address, 0, configChangeTimeout)); err != nil {
			return nil, err
		}
		j.logger.Info("joining", "name", member.GetName(), "id", member.GetId())
	}
	j.learners.begin(server, readClocks().mono, ids.Index(j.raft.CommitIndex()))
	select {
	case j.learners.wakeup <- struct{}{}:
	default:
	}
	return &storepb.Result{}, nil
}

// awaitPromotion waits until a learner has become a voter.
func (j *joiner) awaitPromotion(ctx context.Context, id string) *clusterpb.AdminReply {
	wait, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		changed := j.learners.change()
		known := j.raft.Server(id)
		if known != nil && known.Suffrage == raft.Voter {
			err := j.proposer.confirmConfiguration(ctx)
			return &clusterpb.AdminReply{Outcome: outcomeOf(err), Result: new(storepb.Result)}
		}
		if reason := j.learners.rejected(id, readClocks().mono); reason != "" {
			return rejectJoin(storepb.Code_NOT_PERMITTED, reason)
		}
		select {
		case <-changed:
		case <-wait.Done():
			return retryJoin("it is no voter yet: " + j.learners.result(id))
		}
	}
}

// reconcile checks the learners for as long as this node leads in a term.
func (j *joiner) reconcile(term ids.Term) {
	j.learners.reset()
	for wait := time.Duration(0); j.leadership.term() == term && term != 0; {
		select {
		case <-time.After(wait):
		case <-j.learners.wakeup:
		case <-j.ctx.Done():
			return
		}
		joining := slices.DeleteFunc(j.raft.Servers(), func(s raft.Server) bool {
			return s.Suffrage == raft.Voter || j.members.get(string(s.ID)).GetNonvoter()
		})
		now := readClocks().mono
		j.learners.keepOnly(joining, now)
		var looking sync.WaitGroup
		for _, server := range joining {
			j.learners.begin(server, now, ids.Index(j.raft.CommitIndex()))
			looking.Go(func() { j.check(server) })
		}
		looking.Wait()
		j.remover.pruneUnknown(j.ctx)
		wait = joinInterval
		if len(joining) == 0 {
			wait = idleInterval
		}
	}
}

// check promotes or rejects a learner if it is time.
func (j *joiner) check(server raft.Server) {
	id := string(server.ID)
	member := j.members.get(id)
	applied, err := j.dialer.identify(j.ctx, member)
	ready, reason := j.learners.evaluate(id, readClocks().mono, applied, ids.Index(j.raft.CommitIndex()), err)
	switch {
	case ready:
		if err = j.dialer.dialBack(j.ctx, member); err == nil {
			err = j.accept(server, readClocks().mono)
		}
		if err != nil {
			j.learners.setResult(id, err)
		}
	case reason != "":
		j.reject(server, fmt.Sprintf("the leader %s dropped it: %s", j.members.dir.Name, reason))
	}
}

var errChangeUnderWay = errors.New("other changes of the members are under way")

// accept gives a vote to a learner that answered at a monotonic time: with another voter gone, the
// cluster may depend on it. If other changes delayed this too long, the learner is checked again.
func (j *joiner) accept(server raft.Server, answered time.Duration) error {
	ctx, cancel := context.WithTimeout(j.ctx, changeTimeout)
	defer cancel()
	if !j.proposer.exclusive.Lock(ctx) {
		return errChangeUnderWay
	}
	defer j.proposer.exclusive.Unlock()
	if readClocks().mono-answered > dialBackTimeout {
		return errChangeUnderWay
	}
	if !j.isLearner(server) {
		return nil
	}
	err := j.raft.AddVoterAndWait(ctx, server.ID, server.Address, configChangeTimeout)
	if err == nil {
		j.logger.Info("joined", "name", j.members.get(string(server.ID)).GetName(), "id", server.ID)
		j.learners.wake()
	}
	return err
}

// reject removes a learner.
func (j *joiner) reject(server raft.Server, reason string) {
	ctx, cancel := context.WithTimeout(j.ctx, changeTimeout)
	defer cancel()
	if !j.proposer.exclusive.Lock(ctx) {
		return
	}
	defer j.proposer.exclusive.Unlock()
	if !j.isLearner(server) {
		return
	}
	id := string(server.ID)
	j.logger.Warn("a node that wanted to join is dropped", "name", j.members.get(id).GetName(), "id", id, "reason", reason)
	err := j.remover.removeFromConfig(ctx, id, reason)
	if err == nil {
		err = j.remover.purge(ctx, nil, id, nil)
	}
	if err != nil {
		j.logger.Warn("it is not dropped yet", "id", id, "error", err)
	}
}

// isLearner reports whether raft's configuration still has this learner, and it should get a vote.
func (j *joiner) isLearner(server raft.Server) bool {
	known := j.raft.Server(string(server.ID))
	return known != nil && *known == server && !j.members.get(string(server.ID)).GetNonvoter()
}
