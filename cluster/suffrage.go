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

// suffrage is how a leader gives a member its vote, and takes it. Each can be asked for again, of another leader too.
type suffrage struct {
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	readIndex  *readIndex
	changes    *changes
	caller     *caller
	logger     *slog.Logger
}

func (s *suffrage) set(ctx context.Context, req *clusterpb.SetVoteRequest) *clusterpb.AdminReply {
	if term, leader := s.leadership.await(ctx); term == 0 {
		return &clusterpb.AdminReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
	}
	if req.GetVote() {
		return s.give(ctx, req.GetCaller(), req.GetName())
	}
	return s.changes.administer(ctx, func() (*storepb.Result, error) { return s.take(ctx, req) })
}

// give makes a member a voter once it has all that was committed when that was asked for.
func (s *suffrage) give(ctx context.Context, by *storepb.Caller, name string) *clusterpb.AdminReply {
	member := s.members.get(s.members.find(name))
	known := s.raft.Server(member.GetId())
	switch {
	case known == nil:
		return &clusterpb.AdminReply{Result: noMember(name)}
	case known.Suffrage == raft.Voter:
		return s.changes.administer(ctx, func() (*storepb.Result, error) { return s.giveNow(ctx, by, name) })
	case !member.GetNonvoter():
		return notYet(fmt.Sprintf("%s is joining, and gets its vote once it has caught up", name))
	}
	if err := s.caller.callBack(ctx, member); err != nil {
		return &clusterpb.AdminReply{Result: &storepb.Result{
			Code: storepb.Code_BUSY, Message: fmt.Sprintf("the leader %s does not reach %s (%v): without it nobody gains by its vote",
				s.members.dir.Name, name, err),
		}}
	}
	if err := s.awaitCaughtUp(ctx, member); err != nil {
		return notYet(err.Error())
	}
	return s.changes.administer(ctx, func() (*storepb.Result, error) { return s.giveNow(ctx, by, name) })
}

// giveNow gives a vote, and then takes the mark of who is to have none: without that and without a vote it would be one that joins, and
// be dropped if it did not answer.
func (s *suffrage) giveNow(ctx context.Context, by *storepb.Caller, name string) (*storepb.Result, error) {
	id := s.members.find(name)
	known := s.raft.Server(id)
	if known == nil {
		return noMember(name), nil
	}
	if known.Suffrage != raft.Voter {
		s.logger.Info("a member gets a vote", "name", name, "id", id)
		if err := s.raft.GiveVote(ctx, known.ID, known.Address, configChangeTimeout); err != nil {
			return nil, err
		}
	}
	member := s.members.get(id)
	if !member.GetNonvoter() {
		return new(storepb.Result), s.changes.confirmConfiguration(ctx)
	}
	return s.mark(ctx, by, member, false)
}

// awaitCaughtUp waits a moment for a member to have applied what is committed now.
func (s *suffrage) awaitCaughtUp(ctx context.Context, member *storepb.Member) error {
	goal := ids.Index(s.raft.CommitIndex())
	wait, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		applied, err := s.caller.askNewcomer(wait, member)
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

// take makes a voter a member without a vote. It is marked first: without the mark it would be one that joins.
func (s *suffrage) take(ctx context.Context, req *clusterpb.SetVoteRequest) (*storepb.Result, error) {
	member := s.members.get(s.members.find(req.GetName()))
	known := s.raft.Server(member.GetId())
	switch {
	case known == nil:
		return noMember(req.GetName()), nil
	case known.Suffrage != raft.Voter:
		return s.mark(ctx, req.GetCaller(), member, true)
	}
	if refused := s.needed(member.GetId(), req.GetForce()); refused != nil {
		return refused, nil
	}
	if member.GetId() == s.members.dir.ID && len(s.raft.VoterIDs()) > 1 {
		return nil, s.handOver(ctx)
	}
	if result, err := s.mark(ctx, req.GetCaller(), member, true); err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	s.logger.Info("a member's vote is taken", "name", member.GetName(), "id", known.ID)
	return new(storepb.Result), consensus.Await(ctx, s.raft.DemoteVoter(known.ID, 0, configChangeTimeout))
}

// handOver has another voter lead, which then does what this one cannot do to itself. It is to be asked for again. Raft itself would
// choose one that has most of the log, whether it still answers or not.
func (s *suffrage) handOver(ctx context.Context) error {
	failed := fmt.Errorf("%w: no other voter answers that could lead", raftstore.ErrNotDone)
	for _, voter := range s.able(s.members.voters()) {
		known := s.raft.Server(voter.GetId())
		if known == nil || voter.GetId() == s.members.dir.ID {
			continue
		}
		err := consensus.Await(ctx, s.raft.LeadershipTransferToServer(known.ID, known.Address))
		failed = errors.Join(raftstore.ErrNotDone, err)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return failed
}

// mark notes whether a member is to have a vote.
func (s *suffrage) mark(ctx context.Context, by *storepb.Caller, member *storepb.Member, nonvoter bool) (*storepb.Result, error) {
	marked := proto.Clone(member).(*storepb.Member)
	marked.Nonvoter = nonvoter
	return s.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: setMember(marked)})
}

// needed is why a voter cannot do without its vote, or nil: the others have to be a majority of themselves that answers now.
func (s *suffrage) needed(id string, force bool) *storepb.Result {
	var others []*storepb.Member
	for _, voter := range s.members.voters() {
		if voter.GetId() != id {
			others = append(others, voter)
		}
	}
	name := s.members.get(id).GetName()
	if len(others) == 0 {
		return &storepb.Result{
			Code: storepb.Code_NOT_PERMITTED, Message: fmt.Sprintf("%q is the only voter; stop it instead", name),
		}
	}
	if force {
		return nil
	}
	answering := len(s.able(others))
	if isMajority(answering, len(others)) {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
		"the vote of %s is needed: of the other %d voters %d answer, and without it nothing could be decided. Bring them back first, "+
			"or remove those that are gone; --force does it all the same", name, len(others), answering)}
}

// able are those who answer now and take part in decisions, this node too: the disk of one that takes none is full.
func (s *suffrage) able(voters []*storepb.Member) (able []*storepb.Member) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, voter := range voters {
		asking.Go(func() {
			full := s.raft.IsFull()
			if voter.GetId() != s.members.dir.ID {
				reply := s.readIndex.hear(voter, rpc.ProbeTimeout)
				full = reply == nil || reply.GetFull()
			}
			if !full {
				mu.Lock()
				defer mu.Unlock()
				able = append(able, voter)
			}
		})
	}
	asking.Wait()
	return able
}

func noMember(name string) *storepb.Result {
	return &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("no member is named %q; see `lockfs member list`", name)}
}
