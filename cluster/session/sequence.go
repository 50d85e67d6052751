package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// sequence issues the command numbers of a session, and tracks the number up to which all replies have
// arrived.
type sequence struct {
	mu    sync.Mutex
	begun ids.Sequence // last number of earlier processes; most below it are unused
	last  ids.Sequence
	open  map[ids.Sequence]struct{} // issued, not done
	low   ids.Sequence              // all numbers up to this one are done

	raised chan struct{} // closed when low rises; nil: no waiter
}

// maxAhead limits the numbers beyond the first open one. The cluster keeps the replies to all of them, at
// most [namespace.MaxReplies]. The limit leaves room for the calls of this and of earlier processes.
const maxAhead = namespace.MaxReplies - 2*inFlight

// newSequence continues after last. All numbers up to last are done.
func newSequence(last ids.Sequence) *sequence {
	return &sequence{begun: last, last: last, low: last, open: make(map[ids.Sequence]struct{})}
}

// sequenceAfter continues the sequence of a session from an earlier process. last comes from the journal,
// started is the start of this process on CLOCK_BOOTTIME. After a disk failure the journal may be out of
// date. A reused number would get the reply to another command. So numbers continue at least from the
// nanosecond of the start: earlier processes have used fewer than one per nanosecond.
func sequenceAfter(last ids.Sequence, started time.Duration) *sequence {
	return newSequence(max(last, ids.Sequence(started)))
}

// take returns the next number, and the number up to which replies are acknowledged. It calls note before
// other callers can take a number.
func (s *sequence) take(note func(seq ids.Sequence)) (seq, acked ids.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.open[s.last] = struct{}{}
	note(s.last)
	return s.last, s.low
}

// await waits until the cluster has room for another reply. It returns the error of ctx.
func (s *sequence) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.last-max(s.low, s.begun) < maxAhead {
			s.mu.Unlock()
			return nil
		}
		if s.raised == nil {
			s.raised = make(chan struct{})
		}
		raised := s.raised
		s.mu.Unlock()
		select {
		case <-raised:
		case <-ctx.Done():
			return fmt.Errorf("an earlier call has no answer yet: %w", ctx.Err())
		}
	}
}

// reopen marks a number of an earlier process as open.
func (s *sequence) reopen(seq ids.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[seq] = struct{}{}
	s.low = min(s.low, seq-1)
}

// done records: the reply to a number has arrived, or is not needed.
func (s *sequence) done(seq ids.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, seq)
	low := s.low
	s.raise()
	if s.raised != nil && s.low > low {
		close(s.raised)
		s.raised = nil
	}
}

func (s *sequence) raise() {
	if s.low < s.begun {
		s.low = s.begun
		for seq := range s.open {
			s.low = min(s.low, seq-1)
		}
	}
	for s.low < s.last {
		if _, open := s.open[s.low+1]; open {
			return
		}
		s.low++
	}
}
