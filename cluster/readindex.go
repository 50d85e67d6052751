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

// statFs is a read whose answer tells no more than its index.
var statFs = &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{
	Query: &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}},
}}

// readIndex lets the leader answer reads from its own state (Ongaro, Consensus: Bridging Theory and Practice, section 6.4): what
// it has applied is the read's index, once a round of heartbeats that began after the read has come back from a majority. The
// round is our own, of probes: raft's VerifyLeader counts replies to heartbeats that were sent long before (see the package
// documentation). A leader applies before it acknowledges, so nothing has to be waited for after the round.
type readIndex struct {
	quorumRounds
	ctx         context.Context // ends when the node is closed
	raft        *consensus.Raft
	members     *members
	leadership  *leadership
	peers       *rpc.Peers
	clock       *clock
	askFirst    atomic.Uint32 // number of the voter whose word is asked for before others'
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

// ask asks the voters. If they have become others meanwhile it asks those: of the voters before two changes no majority need have a server
// in common with one after them, which may have elected somebody.
func (r *readIndex) ask() error {
	for {
		asked := r.raft.VotersNumber()
		if err := r.askVoters(); err != nil || r.raft.VotersNumber() == asked {
			return err
		}
	}
}

// askVoters asks as many as it takes. That is mostly one, whose word comes soon; if it does not, all.
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

// confirmedBy tells whether a request proves by itself that nobody newer had been elected when it was sent: it comes from
// another voter, which was still in this term then, and two are a majority.
func (r *readIndex) confirmedBy(req *clusterpb.ExecuteRequest, term ids.Term) bool {
	return ids.Term(req.GetTerm()) == term && r.isQuorumWith(req.GetVoter(), req.GetVoterInstance())
}

// isQuorumWith tells whether this node and another voter are a majority. Nobody is called "". A leader that is removing
// itself is no voter in the newest configuration, which is the one that counts: the voters that are left can elect another
// leader without it, and without the one that it asks.
func (r *readIndex) isQuorumWith(id string, instance uint64) bool {
	voters := r.raft.VoterIDs()
	return r.instances.Follows(raft.ServerID(id), ids.Instance(instance)) && id != r.members.dir.ID && isQuorum(2, len(voters)) && slices.Contains(voters, id) &&
		slices.Contains(voters, r.members.dir.ID)
}

// termReply is what a voter says of its term.
type termReply struct {
	term         ids.Term
	earlierUntil time.Duration // from when on it has not said that it is in an earlier one, or before, on this node's monotonic clock
}

// probeVoters asks every voter for its term and clock. It is nil once a majority, this node included,
// was in the given term after it was called. From silent on none of these has said that it is in an earlier one.
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

// probeTerm answers a voter's word; its term is 0 if it does not answer.
func (r *readIndex) probeTerm(voter *storepb.Member, timeout time.Duration) termReply {
	reply := r.probeVoter(voter, timeout)
	if reply == nil {
		return termReply{}
	}
	return termReply{ids.Term(reply.GetTerm()), monotonic() - time.Duration(reply.GetSilent())}
}

// probeVoter asks a voter how it is, and notes its clock. It answers nil if the voter does not answer in time, or another server does at its
// address: it may have been recovered as another cluster, and its term counts there. Nor does another process of the voter count.
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

// stopPredecessorLeases has the leader of the term before the one in which this node was elected give no more leases, if it still answers, and tells
// for how long those last that it has given.
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
