package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// promoter is how a leader promotes and demotes members. Requests may be repeated, also to another leader.
type promoter struct {
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	readIndex  *readIndex
	proposer   *proposer
	dialer     *dialer
	logger     *slog.Logger
}

func (p *promoter) setVote(ctx context.Context, req *clusterpb.SetVoteRequest) *clusterpb.AdminReply {
	if term, leader := p.leadership.await(ctx); term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if req.GetVote() {
		return p.promote(ctx, req.GetCaller(), req.GetName())
	}
	return p.proposer.administer(ctx, func() (*storepb.Result, error) { return p.demote(ctx, req) })
}

// promote makes a member a voter once it has everything committed at the time of the request.
func (p *promoter) promote(ctx context.Context, by *storepb.Caller, name string) *clusterpb.AdminReply {
	member := p.members.get(p.members.find(name))
	known := p.raft.Server(member.GetId())
	switch {
	case known == nil:
		return &clusterpb.AdminReply{Result: noMember(name)}
	case known.Suffrage == raft.Voter:
		return p.proposer.administer(ctx, func() (*storepb.Result, error) { return p.promoteNow(ctx, by, name) })
	case !member.GetNonvoter():
		return retryJoin(fmt.Sprintf("%s is joining, and gets its vote once it has caught up", name))
	}
	if err := p.dialer.dialBack(ctx, member); err != nil {
		return &clusterpb.AdminReply{Result: &storepb.Result{
			Code: storepb.Code_BUSY, Message: fmt.Sprintf("the leader %s does not reach %s (%v): make sure that it does, then retry",
				p.members.dir.Name, name, err),
		}}
	}
	if err := p.awaitCaughtUp(ctx, member); err != nil {
		return retryJoin(err.Error())
	}
	return p.proposer.administer(ctx, func() (*storepb.Result, error) { return p.promoteNow(ctx, by, name) })
}

// promoteNow gives the vote first and then clears the nonvoter mark: with neither it would count as a
// learner, and be rejected if it did not answer.
func (p *promoter) promoteNow(ctx context.Context, by *storepb.Caller, name string) (*storepb.Result, error) {
	id := p.members.find(name)
	known := p.raft.Server(id)
	if known == nil {
		return noMember(name), nil
	}
	if known.Suffrage != raft.Voter {
		p.logger.Info("a member gets a vote", "name", name, "id", id)
		if err := p.raft.AddVoterAndWait(ctx, known.ID, known.Address, configChangeTimeout); err != nil {
			return nil, err
		}
	}
	member := p.members.get(id)
	if !member.GetNonvoter() {
		return new(storepb.Result), p.proposer.confirmConfiguration(ctx)
	}
	return p.markNonvoter(ctx, by, member, false)
}

// awaitCaughtUp waits a moment until a member has applied the current commit index.
func (p *promoter) awaitCaughtUp(ctx context.Context, member *storepb.Member) error {
	goal := ids.Index(p.raft.CommitIndex())
	wait, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		applied, err := p.dialer.identify(wait, member)
		switch {
		case err == nil && applied >= goal:
			return nil
		case err == nil:
			err = fmt.Errorf("%s has applied entry %d of %d", member.GetName(), applied, goal)
		}
		select {
		case <-time.After(joinInterval):
		case <-wait.Done():
			return err
		}
	}
}

// demote takes the vote of a member. It sets the nonvoter mark first: without mark and vote the member
// would count as a learner.
func (p *promoter) demote(ctx context.Context, req *clusterpb.SetVoteRequest) (*storepb.Result, error) {
	member := p.members.get(p.members.find(req.GetName()))
	known := p.raft.Server(member.GetId())
	switch {
	case known == nil:
		return noMember(req.GetName()), nil
	case known.Suffrage != raft.Voter:
		return p.markNonvoter(ctx, req.GetCaller(), member, true)
	}
	if refused := p.quorumNeeds(member.GetId(), req.GetForce()); refused != nil {
		return refused, nil
	}
	if member.GetId() == p.members.dir.ID && len(p.raft.VoterIDs()) > 1 {
		return nil, p.transferLeadership(ctx)
	}
	if result, err := p.markNonvoter(ctx, req.GetCaller(), member, true); err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	p.logger.Info("a member is demoted", "name", member.GetName(), "id", known.ID)
	return new(storepb.Result), consensus.Await(ctx, p.raft.DemoteVoter(known.ID, 0, configChangeTimeout))
}

// transferLeadership makes another voter the leader, for changes that a leader cannot make to itself. The
// caller asks again. Raft itself would choose the voter with the longest log, reachable or not.
func (p *promoter) transferLeadership(ctx context.Context) error {
	failed := fmt.Errorf("%w: no other voter answers that could lead", raftstore.ErrNotDone)
	for _, voter := range p.canDecide(p.members.voters()) {
		known := p.raft.Server(voter.GetId())
		if known == nil || voter.GetId() == p.members.dir.ID {
			continue
		}
		err := consensus.Await(ctx, p.raft.LeadershipTransferToServer(known.ID, known.Address))
		failed = errors.Join(raftstore.ErrNotDone, err)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return failed
}

// markNonvoter records whether a member stays without a vote.
func (p *promoter) markNonvoter(ctx context.Context, by *storepb.Caller, member *storepb.Member, nonvoter bool) (*storepb.Result, error) {
	marked := proto.Clone(member).(*storepb.Member)
	marked.Nonvoter = nonvoter
	return p.proposer.store.Propose(ctx, &storepb.Command{Caller: by, Op: setMember(marked)})
}

// quorumNeeds returns why a voter cannot lose its vote, or nil: a majority of the others has to answer.
func (p *promoter) quorumNeeds(id string, force bool) *storepb.Result {
	var others []*storepb.Member
	for _, voter := range p.members.voters() {
		if voter.GetId() != id {
			others = append(others, voter)
		}
	}
	name := p.members.get(id).GetName()
	if len(others) == 0 {
		return &storepb.Result{
			Code: storepb.Code_NOT_PERMITTED, Message: fmt.Sprintf("%q is the only voter; stop it instead", name),
		}
	}
	if force {
		return nil
	}
	answering := len(p.canDecide(others))
	if isQuorum(answering, len(others)) {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
		"the vote of %s is needed: of the other %d voters %d answer, and without it nothing could be decided. Bring them back first, "+
			"or remove those that are gone; --force does it all the same", name, len(others), answering)}
}

// canDecide returns the voters, this node included, that answer and have space on their disks.
func (p *promoter) canDecide(voters []*storepb.Member) (canDecide []*storepb.Member) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, voter := range voters {
		asking.Go(func() {
			full := p.raft.IsFull()
			if voter.GetId() != p.members.dir.ID {
				reply := p.readIndex.probeVoter(voter, rpc.ProbeTimeout)
				full = reply == nil || reply.GetFull()
			}
			if !full {
				mu.Lock()
				defer mu.Unlock()
				canDecide = append(canDecide, voter)
			}
		})
	}
	asking.Wait()
	return canDecide
}

func noMember(name string) *storepb.Result {
	return &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("no member is named %q; see `lockfs member list`", name)}
}
