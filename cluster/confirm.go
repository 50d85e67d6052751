package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
)

const (
	probeTimeout = time.Second
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
	if c.next == nil {
		c.next = &roundResult{done: make(chan struct{})}
	}
	result := c.next
	c.start()
	c.mu.Unlock()
	select {
	case <-result.done:
		return result.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start begins the next round if one waits and there is room; the caller holds the lock.
func (c *confirmer) start() {
	if c.next == nil || c.running == roundsAtOnce {
		return
	}
	result := c.next
	c.next = nil
	c.running++
	go func() {
		result.err = c.round()
		close(result.done)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.start()
	}()
}

// probeVoters asks every voter for its term and clock. It is nil once a majority, this node included,
// was in the given term after it was called.
func (n *Node) probeVoters(term uint64) error {
	voters := n.voters()
	needed := len(voters)/2 + 1
	inTerm := make(chan bool, len(voters))
	for _, voter := range voters {
		if voter.GetId() == n.id.ID {
			inTerm <- n.raft.CurrentTerm() == term
			continue
		}
		go func() { inTerm <- n.probe(voter.GetId(), voter.GetApiAddress()) == term }()
	}
	confirmed := 0
	for range voters {
		if <-inTerm {
			confirmed++
		}
		if confirmed == needed {
			return nil
		}
	}
	return errNotConfirmed
}

// probe answers a voter's term, 0 if it does not answer, and notes its clock.
func (n *Node) probe(id, address string) uint64 {
	if address == "" {
		return 0
	}
	peer, err := n.peers.node(address)
	if err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(n.ctx, probeTimeout)
	defer cancel()
	asked := time.Now()
	reply, err := peer.Probe(ctx, &clusterpb.ProbeRequest{})
	if err != nil {
		return 0
	}
	n.clock.measured(id, reply.GetWallClock()+int64(time.Since(asked)/2))
	return reply.GetTerm()
}
