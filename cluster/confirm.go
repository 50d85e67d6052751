package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

const (
	probeTimeout = time.Second
	promptly     = 5 * time.Millisecond // how long one voter alone may take
	// roundsAtOnce lets a reader start a round while another is under way, rather than wait for its end.
	roundsAtOnce = 2
)

var errNotConfirmed = errors.New("no majority confirmed that this node still leads")

// confirmer proves that nobody newer had been elected when it was asked (see the package
// documentation). Readers that come while enough rounds are under way share the next one.
type confirmer struct {
	round func() error // asks the voters; errNotConfirmed

	mu      sync.Mutex
	running int
	next    *roundResult // has not begun
}

type roundResult struct {
	done chan struct{}
	err  error // once done is closed
}

// confirm runs or joins a round that begins after it was called.
func (c *confirmer) confirm(ctx context.Context) error {
	c.mu.Lock()
	if c.next == nil && c.running < roundsAtOnce {
		c.running++
		c.mu.Unlock()
		defer c.ended()
		return c.round()
	}
	if c.next == nil {
		c.next = &roundResult{done: make(chan struct{})}
	}
	result := c.next
	c.mu.Unlock()
	select {
	case <-result.done:
		return result.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended begins the next round if readers wait for one.
func (c *confirmer) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	result := c.next
	if result == nil {
		c.running--
		return
	}
	c.next = nil
	go func() {
		defer c.ended()
		result.err = c.round()
		close(result.done)
	}()
}

// confirmRound asks as many voters as it takes. That is mostly one, whose word comes soon; if it does not, all.
func (n *Node) confirmRound() error {
	term := n.leadership.office()
	if term == 0 {
		return errNotConfirmed
	}
	voters := n.voters()
	others := slices.DeleteFunc(slices.Clone(voters), func(m *storepb.Member) bool { return m.GetId() == n.id.ID })
	if len(others) == len(voters) {
		return errNotConfirmed // see isMajorityWith
	}
	if isMajority(2, len(voters)) && len(others) > 0 {
		asked := n.askFirst.Load()
		voter := others[asked%uint32(len(others))]
		if n.probe(voter, promptly) == term && n.leadership.office() == term {
			return nil
		}
		n.askFirst.CompareAndSwap(asked, asked+1)
	}
	if err := n.probeVoters(term); err != nil {
		return err
	}
	if n.leadership.office() != term {
		return errNotConfirmed
	}
	return nil
}

func isMajority(some, all int) bool { return some > all/2 }

// confirmedBy tells whether a request proves by itself that nobody newer had been elected when it was sent: it comes from
// another voter, which was still in this term then, and two are a majority.
func (n *Node) confirmedBy(req *clusterpb.ExecuteRequest, term uint64) bool {
	return req.GetTerm() == term && n.isMajorityWith(req.GetVoter())
}

// isMajorityWith tells whether this node and another voter are a majority. Nobody is called "". A leader that is removing
// itself is no voter in the newest configuration, which is the one that counts: the voters that are left can elect another
// leader without it, and without the one that it asks.
func (n *Node) isMajorityWith(id string) bool {
	voters := n.voterIDs()
	return id != n.id.ID && isMajority(2, len(voters)) && slices.Contains(voters, id) && slices.Contains(voters, n.id.ID)
}

// probeVoters asks every voter for its term and clock. It is nil once a majority, this node included,
// was in the given term after it was called.
func (n *Node) probeVoters(term uint64) error {
	voters := n.voters()
	inTerm := make(chan bool, len(voters))
	for _, voter := range voters {
		if voter.GetId() == n.id.ID {
			inTerm <- n.raft.CurrentTerm() == term
			continue
		}
		go func() { inTerm <- n.probe(voter, probeTimeout) == term }()
	}
	confirmed := 0
	for range voters {
		if <-inTerm {
			confirmed++
		}
		if isMajority(confirmed, len(voters)) {
			return nil
		}
	}
	return errNotConfirmed
}

// probe answers a voter's term and notes its clock. It is 0 if the voter does not answer in time, or somebody else does at its
// address.
func (n *Node) probe(voter *storepb.Member, timeout time.Duration) uint64 {
	if voter.GetApiAddress() == "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(n.ctx, timeout)
	defer cancel()
	asked := time.Now()
	reply, err := n.peers.Node(voter.GetApiAddress()).Probe(ctx, &clusterpb.ProbeRequest{})
	if err != nil || reply.GetId() != voter.GetId() {
		return 0
	}
	n.clock.measured(voter.GetId(), reply.GetWallClock()+int64(time.Since(asked)/2))
	return reply.GetTerm()
}
