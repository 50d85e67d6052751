package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// remover removes members, for administrators and for the failure detector.
type remover struct {
	raft     *consensus.Raft
	members  *members
	proposer *proposer
	learners *learners
	promoter *promoter
	sessions *sessions
	revokes  bool // hosts have certificates

	drainTimeout time.Duration
	draining     map[string]time.Duration // members whose mounts may still end pending calls, and since when; guarded by proposer.exclusive
}

// drainTimeout is how long at most a removed member keeps its certificate until its mount has ended. The
// server notices its removal after two or three seconds, and nothing else completes the pending calls of
// its mount.
const drainTimeout = 5 * time.Second

// removeByName removes a member by name or raft id, and revokes its host. A replacement becomes a voter
// first, so that the number of voters never drops. It also completes a removal that another leader began.
func (r *remover) removeByName(ctx context.Context, req *clusterpb.RemoveRequest) *clusterpb.AdminReply {
	if replacement := req.GetReplacement(); replacement != "" {
		if r.members.find(replacement) == r.members.find(req.GetName()) {
			return &clusterpb.AdminReply{Result: &storepb.Result{
				Code: storepb.Code_INVALID, Message: fmt.Sprintf("%q cannot replace itself", replacement),
			}}
		}
		reply := r.promoter.setVote(ctx, &clusterpb.SetVoteRequest{Name: replacement, Vote: true, Caller: req.GetCaller()})
		if reply.GetOutcome() != clusterpb.Outcome_DONE || reply.GetResult().GetCode() != storepb.Code_OK {
			return reply
		}
	}
	return r.proposer.administer(ctx, func() (*storepb.Result, error) {
		if replacement := req.GetReplacement(); replacement != "" && !r.isVoter(replacement) {
			return nil, raftstore.ErrNotDone // it was demoted meanwhile
		}
		id := r.members.find(req.GetName())
		known := r.raft.Server(id)
		isServer, isRevoked := r.admitted(req.GetName())
		switch {
		case id == "" && isServer && !isRevoked:
			return r.proposer.store.Propose(ctx, &storepb.Command{Caller: req.GetCaller(), Op: revokeHost(req.GetName())})
		case id == "" && (isServer || req.GetReplacement() != ""): // an earlier reply was lost
			return new(storepb.Result), nil
		case id == "":
			return noMember(req.GetName()), nil
		case known != nil && known.Suffrage == raft.Voter:
			if refused := r.promoter.quorumNeeds(id, req.GetForce()); refused != nil {
				return refused, nil
			}
		}
		if r.revokes && id == r.members.dir.ID { // the leader of this change must still lead afterwards
			return nil, r.promoter.transferLeadership(ctx)
		}
		return new(storepb.Result), r.remove(ctx, req.GetCaller(), id, errRemoved.Error())
	})
}

func (r *remover) isVoter(name string) bool {
	known := r.raft.Server(r.members.find(name))
	return known != nil && known.Suffrage == raft.Voter
}

// remove removes a member for good, with the certificate of its host. It records that first: another
// leader then completes the removal, even after raft's configuration has lost the member. The error is
// errDraining while the member's mount may have pending calls; pruneUnknown completes it then.
func (r *remover) remove(ctx context.Context, by *storepb.Caller, id, reason string) error {
	member := r.members.get(id)
	if r.revokes && member != nil && !member.GetLeaving() {
		member = proto.Clone(member).(*storepb.Member)
		member.Leaving = true
		if _, err := r.proposer.store.Propose(ctx, &storepb.Command{Caller: by, Op: setMember(member)}); err != nil {
			return err
		}
	}
	if err := r.removeFromConfig(ctx, id, reason); err != nil {
		return err
	}
	if id == r.members.dir.ID { // its successor completes the rest
		return nil
	}
	return r.purge(ctx, by, id, member)
}

// purge deletes the rest of a member outside raft's configuration: it revokes the host of a removed
// member, and then deletes the record. The error is errDraining while the member's mount may have pending
// calls.
func (r *remover) purge(ctx context.Context, by *storepb.Caller, id string, member *storepb.Member) error {
	if r.revokes && member.GetLeaving() {
		if r.isDraining(id, member.GetName(), readClocks().mono) {
			return errDraining
		}
		delete(r.draining, id)
		if _, err := r.proposer.store.Propose(ctx, &storepb.Command{Caller: by, Op: revokeHost(member.GetName())}); err != nil {
			return err
		}
	}
	remove := &storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: id}}}
	_, err := r.proposer.store.Propose(ctx, &storepb.Command{Caller: by, Op: remove})
	return err
}

// isDraining reports whether the mount of a removed member is still active.
func (r *remover) isDraining(id, host string, now time.Duration) bool {
	since, known := r.draining[id]
	if !known {
		since = now
		r.draining[id] = now
	}
	return now-since < r.drainTimeout && r.sessions.hasActiveMount(host, now)
}

// admitted reports whether a host was admitted as a server, and whether it was revoked since.
func (r *remover) admitted(name string) (isServer, isRevoked bool) {
	r.raft.FSM.View(func(ns *namespace.Namespace) {
		host := ns.Admission(name)
		isServer, isRevoked = host.GetRole() == storepb.Role_SERVER, host.GetRevoked() != 0
	})
	return isServer, isRevoked
}

// removeFromConfig removes a server from raft's configuration. A node that has not joined yet hears the
// reason at its next request.
func (r *remover) removeFromConfig(ctx context.Context, id, reason string) error {
	if known := r.raft.Server(id); known != nil {
		if err := consensus.Await(ctx, r.raft.RemoveServer(known.ID, 0, configChangeTimeout)); err != nil {
			return err
		}
		r.learners.reject(id, reason, readClocks().mono)
		r.learners.wake()
	}
	return nil
}

// pruneUnknown purges members outside raft's configuration, left by a leader that removed itself or was
// deposed in the middle of a change. A join under way has its server in the configuration before.
func (r *remover) pruneUnknown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if !r.proposer.exclusive.TryLock() {
		return
	}
	defer r.proposer.exclusive.Unlock()
	servers := r.raft.Servers()
	for _, server := range servers { // its removal was lost with another leader
		delete(r.draining, string(server.ID))
	}
	for _, member := range r.members.all() {
		if !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == member.GetId() }) {
			err := r.purge(ctx, nil, member.GetId(), member)
			if errors.Is(err, errDraining) {
				continue
			}
			if err != nil {
				r.proposer.logger.Warn("the remains of a member are not removed yet", "name", member.GetName(), "id", member.GetId(), "error", err)
				return
			}
		}
	}
}
