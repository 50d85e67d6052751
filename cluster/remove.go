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

// remover is how a member is taken out, whoever wants it.
type remover struct {
	raft     *consensus.Raft
	members  *members
	proposer *proposer
	learners *learners
	promoter *promoter
	sessions *sessions
	revokes  bool // hosts have certificates

	drainTimeout time.Duration
	draining     map[string]time.Duration // members whose mounts may still settle what they were asked for, and since when; in the turn of changes
}

// drainTimeout is for how long a member that is out of raft's configuration keeps its certificate at most, until its mount has ended: it
// sees after two seconds or three that it is out, and what its mount was asked for nobody else settles.
const drainTimeout = 5 * time.Second

var errDraining = fmt.Errorf("%w: its mount has not ended yet", raftstore.ErrNotDone)

// removeByName takes a member out by its name, or by its raft id, and its host with it: it is not let in any more. One that it is replaced
// by has to be a voter first, so that there are never fewer. It goes on where a leader was cut off that had taken the member out.
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
			return nil, raftstore.ErrNotDone // somebody has taken its vote meanwhile
		}
		id := r.members.find(req.GetName())
		known := r.raft.Server(id)
		isServer, isRevoked := r.admitted(req.GetName())
		switch {
		case id == "" && isServer && !isRevoked:
			return r.proposer.store.Propose(ctx, &storepb.Command{Caller: req.GetCaller(), Op: revokeHost(req.GetName())})
		case id == "" && (isServer || req.GetReplacement() != ""): // an earlier answer was lost
			return new(storepb.Result), nil
		case id == "":
			return noMember(req.GetName()), nil
		case known != nil && known.Suffrage == raft.Voter:
			if refused := r.promoter.quorumNeeds(id, req.GetForce()); refused != nil {
				return refused, nil
			}
		}
		if r.revokes && id == r.members.dir.ID { // who does it must still lead afterwards
			return nil, r.promoter.transferLeadership(ctx)
		}
		return new(storepb.Result), r.remove(ctx, req.GetCaller(), id, errRemoved.Error())
	})
}

func (r *remover) isVoter(name string) bool {
	known := r.raft.Server(r.members.find(name))
	return known != nil && known.Suffrage == raft.Voter
}

// remove takes a member out for good, with the certificate of its host. That this is under way is recorded first: another leader goes on
// with it once the member has lost its place in raft's configuration, without which nobody else would know that the certificate is to go.
// The error is errDraining while the member's mount may settle something: it is to be done again then, and is by pruneUnknown.
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
	if id == r.members.dir.ID { // a leader that removed itself is none any more; its successor tidies up
		return nil
	}
	return r.purge(ctx, by, id, member)
}

// purge ends what is left of a member that is out of raft's configuration: the certificate of its host, if it was taken out for good,
// and then its record. The error is errDraining while the member's mount may settle something.
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

// isDraining tells whether a mount of a member that was taken out is still there.
func (r *remover) isDraining(id, host string, now time.Duration) bool {
	since, known := r.draining[id]
	if !known {
		since = now
		r.draining[id] = now
	}
	return now-since < r.drainTimeout && r.sessions.hasActiveMount(host, now)
}

// admitted tells whether a host came in as a server, and whether it was taken out since.
func (r *remover) admitted(name string) (isServer, isRevoked bool) {
	r.raft.FSM.View(func(ns *namespace.Namespace) {
		host := ns.Admission(name)
		isServer, isRevoked = host.GetRole() == storepb.Role_SERVER, host.GetRevoked() != 0
	})
	return isServer, isRevoked
}

// removeFromConfig removes a server from raft's configuration. reason is for one that does not know that it has joined: it goes on asking until
// it hears one.
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

// pruneUnknown removes members that are not in raft's configuration, and the certificates of those that were taken out: a leader that
// removed itself could not, and neither could one that was deposed in the middle of a change. One that is under way here has its member
// there before.
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
				r.proposer.logger.Warn("what is left of a member is not removed yet", "name", member.GetName(), "id", member.GetId(), "error", err)
				return
			}
		}
	}
}
