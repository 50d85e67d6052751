package cluster

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// statFs is a cheap read, used for its index.
var statFs = &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{
	Query: &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}},
}}

// readIndex lets the leader answer reads from its own state (Ongaro, Consensus: Bridging Theory and
// Practice, section 6.4). The read's index is the applied index, after a majority confirmed the
// leadership by probes sent after the read arrived. raft's VerifyLeader does not do that (see the package
// documentation). A leader applies before it acknowledges, so no wait follows the round.
type readIndex struct {
	quorumRounds
	ctx         context.Context // ends when the node is closed
	raft        *consensus.Raft
	members     *members
	leadership  *leadership
	peers       *rpc.Peers
	clock       *clock
	askFirst    atomic.Uint32 // number of the voter to ask first
	lastContact lastContact
	termReports *termReports
	space       *diskSpace
	instances   *instances
}

func newReadIndex(
	ctx context.Context, over *consensus.Raft, members *members, leadership *leadership, peers *rpc.Peers, clock *clock, space *diskSpace, termReports *termReports,
	instances *instances,
) *readIndex {
	r := &readIndex{
		ctx: ctx, raft: over, members: members, leadership: leadership, peers: peers, clock: clock, space: space, termReports: termReports,
		instances: instances,
	}
	r.round = r.ask
	return r
}

// ask runs a quorum round, again if the voters changed meanwhile: majorities two configurations apart
// need not overlap.
func (r *readIndex) ask() error {
	for {
		asked := r.raft.VotersNumber()
		if err := r.askVoters(); err != nil || r.raft.VotersNumber() == asked {
			return err
		}
	}
}

// askVoters asks one other voter if one suffices, and all of them if that one is slow.
func (r *readIndex) askVoters() error {
	term := r.leadership.term()
	if term == 0 {
		return errNoQuorum
	}
	voters := r.members.voters()
	others := slices.DeleteFunc(slices.Clone(voters), func(m *storepb.Member) bool { return m.GetId() == r.members.dir.ID })
	if len(others) == len(voters) {
		return errNoQuorum // see isQuorumWith
	}
	if isQuorum(2, len(voters)) && len(others) > 0 {
		asked := r.askFirst.Load()
		voter := others[asked%uint32(len(others))]
		if r.probeTerm(voter, rpc.FastProbeTimeout).term == term && r.leadership.term() == term {
			return nil
		}
		r.askFirst.CompareAndSwap(asked, asked+1)
	}
	if _, err := r.probeVoters(term); err != nil {
		return err
	}
	if r.leadership.term() != term {
		return errNoQuorum
	}
	return nil
}

func isQuorum(some, all int) bool { return some > all/2 }

// confirmedBy reports whether a request itself proves the leadership at the time it was sent: it comes
// from another voter in this term, and two voters are a majority.
func (r *readIndex) confirmedBy(req *clusterpb.ExecuteRequest, term ids.Term) bool {
	return ids.Term(req.GetTerm()) == term && r.isQuorumWith(req.GetVoter(), req.GetVoterInstance())
}

// isQuorumWith reports whether this node and another voter are a majority. A leader that is removing
// itself is no voter in the newest configuration, and only that counts: the remaining voters can elect
// another leader without it.
func (r *readIndex) isQuorumWith(id string, instance uint64) bool {
	voters := r.raft.VoterIDs()
	return r.instances.Follows(raft.ServerID(id), ids.Instance(instance)) && id != r.members.dir.ID && isQuorum(2, len(voters)) && slices.Contains(voters, id) &&
		slices.Contains(voters, r.members.dir.ID)
}

// termReply is a voter's report of its term.
type termReply struct {
	term         ids.Term
	earlierUntil time.Duration // the voter has not reported an earlier term since, on this node's monotonic clock
}

// probeVoters asks every voter for its term and clock. It returns nil once a majority, this node
// included, was in the given term after the call. None of these has reported an earlier term since
// silent.
func (r *readIndex) probeVoters(term ids.Term) (silent time.Duration, err error) {
	voters := r.members.voters()
	said := make(chan termReply, len(voters))
	for _, voter := range voters {
		if voter.GetId() == r.members.dir.ID {
			said <- r.ownReport()
			continue
		}
		go func() { said <- r.probeTerm(voter, rpc.ProbeTimeout) }()
	}
	confirmed := 0
	for range voters {
		if word := <-said; word.term == term {
			confirmed++
			silent = max(silent, word.earlierUntil)
		}
		if isQuorum(confirmed, len(voters)) {
			return silent, nil
		}
	}
	return 0, errNoQuorum
}

func (r *readIndex) ownReport() termReply {
	term, silent := r.termReports.report()
	return termReply{term, monotonic() - silent}
}

// probeTerm returns a voter's report; its term is 0 if the voter does not answer.
func (r *readIndex) probeTerm(voter *storepb.Member, timeout time.Duration) termReply {
	reply := r.probeVoter(voter, timeout)
	if reply == nil {
		return termReply{}
	}
	return termReply{ids.Term(reply.GetTerm()), monotonic() - time.Duration(reply.GetSilent())}
}

// probeVoter probes a voter and records its clock. It returns nil without a reply in time, or for a reply
// of another server or process: the terms of a recovered copy count in another cluster.
func (r *readIndex) probeVoter(voter *storepb.Member, timeout time.Duration) *clusterpb.ProbeReply {
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	return r.sendProbe(ctx, voter, new(clusterpb.ProbeRequest))
}

func (r *readIndex) sendProbe(ctx context.Context, voter *storepb.Member, question *clusterpb.ProbeRequest) *clusterpb.ProbeReply {
	if voter.GetAddress() == "" {
		return nil
	}
	asked := time.Now()
	reply, err := r.peers.Node(voter.GetAddress()).Probe(ctx, question)
	if err != nil || reply.GetId() != voter.GetId() || reply.GetCluster() != r.members.dir.ClusterID() {
		return nil
	}
	if r.instances.follow(ctx, raft.ServerID(voter.GetId()), raft.ServerAddress(voter.GetAddress()), ids.Instance(reply.GetInstance())) != nil {
		return nil // another process with that voter's identity
	}
	r.clock.setPeer(voter.GetId(), reply.GetWallClock()+int64(time.Since(asked)/2))
	r.space.note(voter.GetId(), reply.GetFreeSpace(), reply.GetMinSpace())
	r.lastContact.note(voter.GetId(), ids.Term(reply.GetTerm()), asked)
	return reply
}

// stopPredecessorLeases asks the leader of the previous term, if it still answers, to stop granting
// leases, and returns how long its leases last.
func (r *readIndex) stopPredecessorLeases(ctx context.Context, elected ids.Term) <-chan time.Duration {
	voters := r.members.voters()
	lasts := make(chan time.Duration, len(voters))
	for _, voter := range voters {
		if voter.GetId() == r.members.dir.ID {
			continue
		}
		go func() {
			if reply := r.sendProbe(ctx, voter, &clusterpb.ProbeRequest{Elected: uint64(elected), Cluster: r.members.dir.ClusterID()}); reply.GetResigned() {
				lasts <- time.Duration(reply.GetLeasesLast())
			}
		}()
	}
	return lasts
}
