package session

import (
	"context"
	"fmt"
	"sync"
)

// silence knows that the cluster does not answer: a call has asked for its whole time, and nothing that anybody asked was
// answered meanwhile. It lasts until something is, which keepalives and the cancels of what was given up go on to ask. Calls
// fail at once for so long. The kernel lets one program at a time create or remove in a directory: did each
// wait for its own time to be over, the last one would wait for all of them.
//
// Commands need a disk of each voter of a majority, other questions its word only. So that commands are not answered
// may be told of them alone.
//
// There is no clock in it: whoever was stopped, or slept, has asked nothing meanwhile.
type silence struct {
	mu      sync.Mutex
	answers [2]uint64 // so far, by what was asked
	silent  [2]bool
}

// asked is what a call needs an answer to.
type asked int

const (
	anything asked = iota
	aCommand
)

// heard answers how much was answered so far.
func (s *silence) heard() [2]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers
}

// answered is told of each answer that a majority stands behind. It answers whether that ends a silence.
func (s *silence) answered(what asked) (ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range what + 1 {
		ends = ends || s.silent[kind]
		s.answers[kind]++
		s.silent[kind] = false
	}
	return ends
}

// endured is told of a call whose time is up, and how much had been answered when it began. It answers whether that begins a
// silence.
func (s *silence) endured(since [2]uint64, what asked) (begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range what + 1 {
		if s.answers[kind] == since[kind] && !s.silent[kind] {
			s.silent[kind], begins = true, true
		}
	}
	return begins
}

func (s *silence) of(what asked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent[what]
}

// patience gives a call its time.
func (c *Client) patience(ctx context.Context, what asked) (context.Context, context.CancelFunc) {
	since, confirmed := c.silence.heard(), c.current.confirmations()
	return withPatience(ctx, c.timeout, func() {
		if c.current.endured(confirmed) {
			c.logger.Warn("the session is not confirmed; changes fail at once until one is", "after", c.timeout)
		}
		if c.silence.endured(since, what) {
			c.logger.Warn("the cluster does not answer; calls fail at once until it does", "after", c.timeout)
			c.hurry()
		}
	})
}

// answered notes an answer that a majority stands behind.
func (c *Client) answered(what asked) {
	if c.silence.answered(what) {
		c.logger.Info("the cluster answers again")
	}
}

// mayAsk is an error, which wraps context.DeadlineExceeded, while a call has nothing to hope for. That commands are
// not answered counts for as long as one is asked again in the background: else nobody would notice that they are. They need a
// session, too, which is asked for all the time.
func (c *Client) mayAsk(what asked) error {
	if what == aCommand && c.current.isHopeless() {
		return fmt.Errorf("the session is not confirmed: %w", context.DeadlineExceeded)
	}
	if c.silence.of(anything) || what == aCommand && c.silence.of(aCommand) && c.unsettled.any() {
		return fmt.Errorf("the cluster does not answer: %w", context.DeadlineExceeded)
	}
	return nil
}
