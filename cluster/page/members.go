package page

import (
	"slices"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// Member is a row in the list of members, and an element of /v1/members.
type Member struct {
	Name     string   `json:"name"`
	Address  string   `json:"address"`
	State    string   `json:"state"` // leader, follower, candidate; unreachable; joining: no vote yet; non-voter: never a vote
	Version  string   `json:"version,omitempty"`
	Error    string   `json:"error,omitempty"`
	Term     uint64   `json:"term,omitempty"`
	Commit   uint64   `json:"commit_index,omitempty"`
	Applied  uint64   `json:"applied_index,omitempty"`
	Lag      uint64   `json:"lag"` // entries committed by the leader and not applied by the member
	Offset   float64  `json:"clock_offset_seconds"`
	Silent   float64  `json:"silent_seconds"` // since its last reply to the leader
	Mount    string   `json:"mount,omitempty"`
	Samples  []Sample `json:"samples"` // of the last hour
	insecure bool
}

// Sample has a member's own measurements of half a minute. A percentile without data is 0.
type Sample struct {
	Ended     moment  `json:"ended"` // on the member's clock
	Lag       uint64  `json:"lag"`
	Commits   uint64  `json:"commits"`
	CommitP50 float64 `json:"commit_p50_seconds"`
	CommitP99 float64 `json:"commit_p99_seconds"`
	Writes    uint64  `json:"fsyncs"`
	WriteP50  float64 `json:"fsync_p50_seconds"`
	WriteP99  float64 `json:"fsync_p99_seconds"`
}

func describeMembers(known *clusterpb.StatusReply, replies []*clusterpb.StatusReply, failures []error, leader *clusterpb.StatusReply) []Member {
	members := make([]Member, len(replies))
	for i, member := range known.GetMembers() {
		m := Member{Name: member.GetName(), Address: member.GetAddress(), State: "unreachable", Samples: []Sample{}}
		if failures[i] != nil {
			m.Error = failures[i].Error()
		} else {
			reply := replies[i]
			m.State = stateOf(member, reply, known.GetVoters())
			m.Version, m.Term, m.Mount = reply.GetVersion(), reply.GetTerm(), reply.GetMount()
			m.Commit, m.Applied, m.insecure = reply.GetCommitIndex(), reply.GetAppliedIndex(), reply.GetInsecure()
			if committed := max(leader.GetCommitIndex(), m.Commit); committed > m.Applied {
				m.Lag = committed - m.Applied
			}
			for _, sample := range reply.GetRecent() {
				m.Samples = append(m.Samples, describeSample(sample))
			}
		}
		for _, seen := range leader.GetVotersSeen() {
			if seen.GetId() == member.GetId() {
				m.Offset, m.Silent = time.Duration(seen.GetClockOffset()).Seconds(), time.Duration(seen.GetSilent()).Seconds()
			}
		}
		members[i] = m
	}
	slices.SortFunc(members, func(a, b Member) int { return lockjson.ComparePaths(a.Name, b.Name) })
	return members
}

func stateOf(member *storepb.Member, reply *clusterpb.StatusReply, voters []string) string {
	switch {
	case slices.Contains(voters, member.GetId()):
		return reply.GetState()
	case member.GetNonvoter():
		return "non-voter"
	}
	return "joining"
}

func describeSample(s *clusterpb.Sample) Sample {
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	return Sample{
		Ended: moment(s.GetEnded()), Lag: s.GetLag(), Commits: s.GetCommits(), CommitP50: seconds(s.GetCommitP50()),
		CommitP99: seconds(s.GetCommitP99()), Writes: s.GetWrites(), WriteP50: seconds(s.GetWriteP50()), WriteP99: seconds(s.GetWriteP99()),
	}
}
