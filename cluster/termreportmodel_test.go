package cluster

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/cluster/lease"
	"lockfs/raftstore/ids"
)

// electorate is the nodes of a cluster as far as elections, configurations and leases go. Whoever leads
// believes so until he is told of a newer term, and may be wrong.
type electorate struct {
	t      *rapid.T
	random *rand.Rand // rapid prefers small numbers
	now    time.Duration
	nodes  []*elector
	leases []playedLease
}

// playedLease is one that a leader has given.
type playedLease struct {
	term  ids.Term
	until time.Duration
}

type elector struct {
	*termReports
	term   ids.Term
	log    []playedEntry
	commit int // how many entries it knows to be committed
	told   int // of how many it was told (termReports.onConfigChange)

	leads, ready   bool
	elected, opens time.Duration // opens: 0: it knows of no majority's words yet
	asks           *playedRound
	commands       []playedCommand // whose answers are to bring leases

	begun, resigned ids.Term // in which it was ready last, and has resigned, since it was started
}

// playedEntry is one of the log: the voters from there on.
type playedEntry struct {
	term    ids.Term
	voters  []int
	changes bool // else it is what a leader begins with
}

// playedCommand is one that came to a leader.
type playedCommand struct {
	came  time.Duration
	index int // of its entry
}

// playedRound is a round of probes for a lease.
type playedRound struct {
	sent   time.Duration
	voters []int
	heard  map[int]bool
}

func (n *elector) voters() []int { return n.log[len(n.log)-1].voters }

// isAsNew is raft's comparison of logs.
func (n *elector) isAsNew(than *elector) bool {
	own, other := n.log[len(n.log)-1].term, than.log[len(than.log)-1].term
	return own > other || own == other && len(n.log) >= len(than.log)
}

// hear is told of a term.
func (n *elector) hear(term ids.Term) {
	if term > n.term {
		n.term, n.leads, n.ready, n.asks, n.commands = term, false, false, nil, nil
	}
}

func (n *elector) tell(upTo int) {
	for ; n.told < upTo; n.told++ {
		if n.log[n.told].changes {
			n.onConfigChange()
		}
	}
}

func (e *electorate) restart(n *elector) {
	n.termReports = newTermReports(func() ids.Term { return n.term }, func() time.Duration { return e.now })
	n.leads, n.ready, n.asks, n.commands, n.told, n.commit, n.begun = false, false, nil, nil, 0, 0, 0
}

// reached is who of some answers one.
func (e *electorate) reached(by int, some []int) (reached []int) {
	for _, i := range some {
		if i == by || e.random.IntN(3) != 0 {
			reached = append(reached, i)
		}
	}
	return reached
}

func (e *electorate) elect(i int) {
	n := e.nodes[i]
	if !slices.Contains(n.voters(), i) {
		return
	}
	n.hear(n.term + 1)
	votes := 0
	for _, j := range e.reached(i, n.voters()) {
		voter := e.nodes[j]
		if j == i || voter.term < n.term && n.isAsNew(voter) {
			voter.hear(n.term)
			votes++
		}
	}
	if isQuorum(votes, len(n.voters())) {
		n.leads, n.ready, n.elected, n.opens = true, false, e.now, 0
		n.store(append(slices.Clone(n.log), playedEntry{n.term, n.voters(), false}))
	}
}

// store has a node have another log.
func (n *elector) store(log []playedEntry) {
	if len(log) != len(n.log) || log[len(log)-1].term != n.log[len(n.log)-1].term {
		n.onStoreEntries()
	}
	n.log = log
}

// replicate has others have a leader's log.
func (e *electorate) replicate(i int) {
	n := e.nodes[i]
	stored := 0
	for j, other := range e.nodes {
		if j != i && (e.random.IntN(4) == 0 || other.term > n.term) {
			continue
		}
		other.hear(n.term)
		other.store(slices.Clone(n.log))
		if slices.Contains(n.voters(), j) {
			stored++
		}
		other.commit = max(other.commit, n.commit)
		other.tell(other.commit)
	}
	if isQuorum(stored, len(n.voters())) {
		n.commit = len(n.log)
		n.tell(n.commit)
	}
}

// becomeReady is what leaderLoop does.
func (e *electorate) becomeReady(i int) {
	n := e.nodes[i]
	if n.commit < len(n.log) || n.opens != 0 {
		return
	}
	confirmed, silent := 0, time.Duration(0)
	for _, j := range e.reached(i, n.voters()) {
		if term, age := e.nodes[j].report(); term == n.term {
			confirmed, silent = confirmed+1, max(silent, e.now-age)
		}
	}
	if isQuorum(confirmed, len(n.voters())) {
		n.opens = max(e.now, n.leaseExpiry(n.elected, silent))
	}
	for _, j := range e.reached(i, n.voters()) {
		if before := e.nodes[j]; n.opens != 0 && before.begun != 0 && before.begun == n.term-1 {
			n.opens = min(n.opens, max(e.now, e.resign(before)))
		}
	}
}

// resign has a node give no more leases in the term in which it was ready last, and answers until when
// those last that it has given.
func (e *electorate) resign(n *elector) (until time.Duration) {
	n.resigned = n.begun
	for _, given := range e.leases {
		if given.term == n.begun {
			until = max(until, given.until)
		}
	}
	return until
}

// grant has a leader ask for words, and give a lease once a majority has given theirs, or a while later.
func (e *electorate) grant(i int) {
	n := e.nodes[i]
	if n.asks != nil && isQuorum(len(n.asks.heard), len(n.asks.voters)) {
		if n.resigned != n.term {
			e.leases = append(e.leases, playedLease{n.term, n.asks.sent + lease.Duration})
		}
		n.asks = nil
		return
	}
	if n.asks == nil {
		n.asks = &playedRound{e.now, n.voters(), make(map[int]bool)}
	}
	for _, j := range e.reached(i, n.asks.voters) {
		if isQuorum(len(n.asks.heard), len(n.asks.voters)) {
			break // nobody else is asked
		}
		if term, _ := e.nodes[j].report(); term == n.term {
			n.asks.heard[j] = true
		}
	}
}

// command has a command come to a leader.
func (e *electorate) command(i int) {
	n := e.nodes[i]
	n.store(append(slices.Clone(n.log), playedEntry{n.term, n.voters(), false}))
	n.commands = append(n.commands, playedCommand{e.now, len(n.log)})
}

// follow gives leases with the answers to commands that a majority has stored, or later.
func (e *electorate) follow(i int) {
	n := e.nodes[i]
	n.commands = slices.DeleteFunc(n.commands, func(c playedCommand) bool {
		if c.index > n.commit || e.random.IntN(2) == 0 {
			return false
		}
		if n.resigned != n.term {
			e.leases = append(e.leases, playedLease{n.term, c.came + lease.Duration})
		}
		return true
	})
}

// reconfigure gives another node a vote, or takes it.
func (e *electorate) reconfigure(i, other int) {
	n := e.nodes[i]
	if n.commit < len(n.log) || other == i {
		return
	}
	voters := slices.DeleteFunc(slices.Clone(n.voters()), func(j int) bool { return j == other })
	if len(voters) == len(n.voters()) {
		voters = append(voters, other)
	}
	n.store(append(slices.Clone(n.log), playedEntry{n.term, voters, true}))
}

// lead is what one does that believes to lead.
func (e *electorate) lead(i int) {
	n := e.nodes[i]
	if !n.ready {
		e.becomeReady(i)
		if n.opens != 0 && e.now >= n.opens {
			n.ready, n.begun = true, n.term
			for _, given := range e.leases {
				require.False(e.t, given.term < n.term && given.until > e.now, "a lease of term %d lasts when node %d begins with %d", given.term, i, n.term)
			}
		}
		return
	}
	if e.random.IntN(3) == 0 {
		e.reconfigure(i, e.random.IntN(len(e.nodes)))
	}
	if e.random.IntN(4) == 0 { // else commands are all that words are given by
		e.grant(i)
	}
	e.follow(i)
	if e.random.IntN(3) == 0 {
		e.command(i)
	}
}

// TestALeaderBeginsWhenAllLeasesOfOthersAreOver plays leaders against each other that give leases and
// change who votes.
func TestALeaderBeginsWhenAllLeasesOfOthersAreOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := &electorate{t: t, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), now: time.Hour}
		for range 5 {
			n := &elector{log: []playedEntry{{0, []int{0, 1, 2}, true}}}
			e.restart(n)
			e.nodes = append(e.nodes, n)
		}
		for range 300 {
			i := e.random.IntN(len(e.nodes))
			switch step := e.random.IntN(20); {
			case step < 6:
				e.now += time.Duration(1+e.random.IntN(400)) * time.Millisecond
			case step == 6:
				e.elect(i)
			case step == 7:
				if e.random.IntN(10) == 0 {
					e.restart(e.nodes[i])
				}
			default:
				for i, n := range e.nodes {
					if n.leads {
						e.replicate(i)
						e.lead(i)
					}
				}
			}
		}
	})
}
