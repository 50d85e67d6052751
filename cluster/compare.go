package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// comparison is how a leader finds a voter with a wrong state, because of a memory fault or a bug.
// Nothing that such a voter says about locks is reliable, so a command takes it out of service, together
// with its data directory.
type comparison struct {
	ctx        context.Context // ends when the node is closed
	interval   time.Duration
	members    *members
	leadership *leadership
	proposer   *proposer
	peers      *rpc.Peers
	instances  *instances
	self       rpc.Node
	logger     *slog.Logger
}

// Intervals between comparisons, and between requests for a voter's hash.
const (
	compareInterval = 5 * time.Minute
	compareRetry    = 250 * time.Millisecond
)

func (c *comparison) run() {
	next := time.NewTicker(c.interval)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if term := c.leadership.term(); term != 0 {
				c.compare(term)
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// compare makes all nodes hash the state after one command, and reports the result.
func (c *comparison) compare(term ids.Term) {
	ctx, cancel := context.WithTimeout(c.ctx, max(c.interval, rpc.AttemptTimeout))
	defer cancel()
	frozen, err := c.proposer.propose(ctx, &storepb.Op{Op: &storepb.Op_FreezeState{FreezeState: &storepb.FreezeState{}}})
	if err != nil {
		c.logger.Warn("the voters' states were not compared", "error", err)
		return
	}
	voters := c.members.voters()
	answers := make(map[string]stateReply)
	for len(answers) < len(voters) && c.leadership.term() == term {
		for _, voter := range voters {
			if _, known := answers[voter.GetId()]; known {
				continue
			}
			if answer, known := c.ask(ctx, voter, ids.Index(frozen.GetIndex())); known {
				answers[voter.GetId()] = answer
			}
		}
		if len(answers) == len(voters) {
			break
		}
		select {
		case <-time.After(compareRetry):
			continue
		case <-ctx.Done():
		}
		break
	}
	if c.leadership.term() == term {
		c.report(compareStates(len(voters), answers), voters, ids.Index(frozen.GetIndex()))
	}
}

// ask returns a voter's hashes after a command; known is false if it has none yet.
func (c *comparison) ask(ctx context.Context, voter *storepb.Member, index ids.Index) (answer stateReply, known bool) {
	node := c.self
	if voter.GetId() != c.members.dir.ID {
		node = c.peers.Node(voter.GetAddress())
	}
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	status, err := node.Status(ctx, &clusterpb.StatusRequest{Frozen: uint64(index)})
	if err != nil || status.GetId() != voter.GetId() || status.GetFrozen() == nil ||
		voter.GetId() != c.members.dir.ID && !c.instances.follows(voter.GetId(), voter.GetAddress(), status.GetInstance()) {
		return stateReply{}, false
	}
	return stateReply{status.GetVersion(), status.GetFrozen().GetHash(), status.GetFrozen().GetKeptHash()}, true
}

// report raises new alarms.
func (c *comparison) report(found comparisonResult, voters []*storepb.Member, index ids.Index) {
	for _, voter := range voters {
		if !found.differs[voter.GetId()] {
			continue
		}
		c.raise(&storepb.Alarm{
			Kind: namespace.AlarmStateDiffers, Node: voter.GetId(), Name: voter.GetName(), Text: fmt.Sprintf(
				"the state of member %s at index %d differs from the quorum's: its memory or its disk is at fault. It is out of service: "+
					"check that host, run `lockfs member remove %[1]s`, and let it join again with an empty data directory",
				voter.GetName(), index),
		})
	}
	if found.undecided {
		c.raise(&storepb.Alarm{Kind: namespace.AlarmStateUndecided, Text: fmt.Sprintf(
			"the states of the voters at index %d differ, or differ from their hashes, and no quorum agrees: "+
				"check the memory and disk of every server, and read the servers' logs", index)})
	}
}

func (c *comparison) raise(alarm *storepb.Alarm) {
	c.logger.Error("alarm: "+alarm.GetText(), "kind", alarm.GetKind(), "member", alarm.GetName())
	c.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_RaiseAlarm{RaiseAlarm: &storepb.RaiseAlarm{Alarm: alarm}}})
}

// stateReply has a voter's hashes of its state after one command.
type stateReply struct {
	version  string // of its program: another one may hash the same state differently
	hash     string // of its whole memory
	expected string // maintained incrementally
}

// isSound reports whether a voter's memory is as expected.
func (r stateReply) isSound() bool { return r.hash == r.expected }

// comparisonResult is the result of the voters' replies together.
type comparisonResult struct {
	differs   map[string]bool // voters with another state than the majority, by id
	undecided bool            // states differ or are unsound, and no majority agrees
}

// compareStates compares the replies of the voters; some may be missing. More than half of all voters,
// with one version of the program, are a majority. It says nothing about voters of another version.
func compareStates(voters int, answers map[string]stateReply) comparisonResult {
	having := make(map[stateReply]int)
	for _, answer := range answers {
		having[answer]++
	}
	for state, count := range having {
		if !state.isSound() || count*2 <= voters {
			continue
		}
		differs := make(map[string]bool)
		for id, answer := range answers {
			if answer.version == state.version && answer != state {
				differs[id] = true
			}
		}
		return comparisonResult{differs: differs}
	}
	versions := make(map[string]stateReply)
	for _, answer := range answers {
		if other, found := versions[answer.version]; !answer.isSound() || found && other != answer {
			return comparisonResult{undecided: true}
		}
		versions[answer.version] = answer
	}
	return comparisonResult{}
}
