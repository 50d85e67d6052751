package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// sequence hands out a session's command numbers, and knows up to which one every reply has come.
type sequence struct {
	mu    sync.Mutex
	begun ids.Sequence // the last number of earlier processes, most of which none has had
	last  ids.Sequence
	open  map[ids.Sequence]struct{} // handed out, not done
	low   ids.Sequence              // every number up to this one is done

	raised chan struct{} // closed when low is raised, if anybody waits for that
}

// maxAhead is how many numbers are handed out beyond one that is not done. All of that time the cluster keeps the replies to them, of which
// it keeps so many ([namespace.MaxReplies]) that there is room for what is under way, here and in earlier processes.
const maxAhead = namespace.MaxReplies - 2*inFlight

// newSequence goes on after last; all up to that are done.
func newSequence(last ids.Sequence) *sequence {
	return &sequence{begun: last, last: last, low: last, open: make(map[ids.Sequence]struct{})}
}

// sequenceAfter goes on with a session that earlier processes had, as a journal says, in a process that was started then, on the host's
// CLOCK_BOOTTIME. A journal may be on a disk that has failed meanwhile, and then say what was so some time ago: a number that was taken again
// would be answered what the command was answered that had it first. So numbers go on from the nanosecond of the start: earlier processes
// have taken fewer than one in each.
func sequenceAfter(last ids.Sequence, started time.Duration) *sequence {
	return newSequence(max(last, ids.Sequence(started)))
}

// take answers the next number and up to which one the replies are not needed any more. note is told the
// number before anybody else can take one.
func (s *sequence) take(note func(seq ids.Sequence)) (seq, acked ids.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.open[s.last] = struct{}{}
	note(s.last)
	return s.last, s.low
}

// await waits until the cluster has room for another reply. The error is that of ctx.
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

// reopen is for a number that was handed out by an earlier process, and is not done.
func (s *sequence) reopen(seq ids.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[seq] = struct{}{}
	s.low = min(s.low, seq-1)
}

// done says that the reply to a number has come, or will never be asked for again.
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
