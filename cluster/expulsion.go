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

// expulsion is how a member is taken out, whoever wants it.
type expulsion struct {
	raft      *consensus.Raft
	members   *members
	changes   *changes
	newcomers *newcomers
	suffrage  *suffrage
	sessions  *sessions
	revokes   bool // hosts have certificates

	leavingTime time.Duration
	leaving     map[string]time.Duration // members whose mounts may still settle what they were asked for, and since when; in the turn of changes
}

// leavingTime is for how long a member that is out of raft's configuration keeps its certificate at most, until its mount has ended: it
// sees after two seconds or three that it is out, and what its mount was asked for nobody else settles.
const leavingTime = 5 * time.Second

var errSettling = fmt.Errorf("%w: its mount has not ended yet", raftstore.ErrNotDone)

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
		isServer, isRevoked := e.admitted(req.GetName())
		switch {
		case id == "" && isServer && !isRevoked:
			return e.changes.store.Propose(ctx, &storepb.Command{Caller: req.GetCaller(), Op: revokeHost(req.GetName())})
		case id == "" && (isServer || req.GetReplacement() != ""): // an earlier answer was lost
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

// expel takes a member out for good, with the certificate of its host. That this is under way is recorded first: another leader goes on
// with it once the member has lost its place in raft's configuration, without which nobody else would know that the certificate is to go.
// The error is errSettling while the member's mount may settle something: it is to be done again then, and is by forgetStrangers.
func (e *expulsion) expel(ctx context.Context, by *storepb.Caller, id, reason string) error {
	member := e.members.get(id)
	if e.revokes && member != nil && !member.GetLeaving() {
		member = proto.Clone(member).(*storepb.Member)
		member.Leaving = true
		if _, err := e.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: setMember(member)}); err != nil {
			return err
		}
	}
	if err := e.takeOut(ctx, id, reason); err != nil {
		return err
	}
	if id == e.members.dir.ID { // a leader that removed itself is none any more; its successor tidies up
		return nil
	}
	return e.forget(ctx, by, id, member)
}

// forget ends what is left of a member that is out of raft's configuration: the certificate of its host, if it was taken out for good,
// and then its record. The error is errSettling while the member's mount may settle something.
func (e *expulsion) forget(ctx context.Context, by *storepb.Caller, id string, member *storepb.Member) error {
	if e.revokes && member.GetLeaving() {
		if e.settles(id, member.GetName(), readClocks().mono) {
			return errSettling
		}
		delete(e.leaving, id)
		if _, err := e.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: revokeHost(member.GetName())}); err != nil {
			return err
		}
	}
	remove := &storepb.Op{Op: &storepb.Op_RemoveMember{RemoveMember: &storepb.RemoveMember{Id: id}}}
	_, err := e.changes.store.Propose(ctx, &storepb.Command{Caller: by, Op: remove})
	return err
}

// settles tells whether a mount of a member that was taken out is still there.
func (e *expulsion) settles(id, host string, now time.Duration) bool {
	since, known := e.leaving[id]
	if !known {
		since = now
		e.leaving[id] = now
	}
	return now-since < e.leavingTime && e.sessions.speaks(host, now)
}

// admitted tells whether a host came in as a server, and whether it was taken out since.
func (e *expulsion) admitted(name string) (isServer, isRevoked bool) {
	e.raft.FSM.View(func(ns *namespace.Namespace) {
		host := ns.Admission(name)
		isServer, isRevoked = host.GetRole() == storepb.Role_SERVER, host.GetRevoked() != 0
	})
	return isServer, isRevoked
}

// takeOut removes a server from raft's configuration. reason is for one that does not know that it has joined: it goes on asking until
// it hears one.
func (e *expulsion) takeOut(ctx context.Context, id, reason string) error {
	if known := e.raft.Server(id); known != nil {
		if err := consensus.Await(ctx, e.raft.RemoveServer(known.ID, 0, configChangeTimeout)); err != nil {
			return err
		}
		e.newcomers.refuse(id, reason, readClocks().mono)
		e.newcomers.wake()
	}
	return nil
}

// forgetStrangers removes members that are not in raft's configuration, and the certificates of those that were taken out: a leader that
// removed itself could not, and neither could one that was deposed in the middle of a change. One that is under way here has its member
// there before.
func (e *expulsion) forgetStrangers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if !e.changes.turn.takeNow() {
		return
	}
	defer e.changes.turn.pass()
	servers := e.raft.Servers()
	for _, server := range servers { // its removal was lost with another leader
		delete(e.leaving, string(server.ID))
	}
	for _, member := range e.members.all() {
		if !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == member.GetId() }) {
			err := e.forget(ctx, nil, member.GetId(), member)
			if errors.Is(err, errSettling) {
				continue
			}
			if err != nil {
				e.changes.logger.Warn("what is left of a member is not removed yet", "name", member.GetName(), "id", member.GetId(), "error", err)
				return
			}
		}
	}
}
