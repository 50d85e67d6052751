package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// numbers hands out a session's command numbers, and knows up to which one every reply has come.
type numbers struct {
	mu    sync.Mutex
	begun ids.Sequence // the last number of earlier processes, most of which none has had
	last  ids.Sequence
	open  map[ids.Sequence]struct{} // handed out, not done
	low   ids.Sequence              // every number up to this one is done

	raised chan struct{} // closed when low is raised, if anybody waits for that
}

// mostAhead is how many numbers are handed out beyond one that is not done. All of that time the cluster keeps the replies to them, of which
// it keeps so many ([namespace.MaxReplies]) that there is room for what is under way, here and in earlier processes.
const mostAhead = namespace.MaxReplies - 2*inFlight

// newNumbers goes on after last; all up to that are done.
func newNumbers(last ids.Sequence) *numbers {
	return &numbers{begun: last, last: last, low: last, open: make(map[ids.Sequence]struct{})}
}

// numbersAfter goes on with a session that earlier processes had, as a journal says, in a process that was started then, on the host's
// CLOCK_BOOTTIME. A journal may be on a disk that has failed meanwhile, and then say what was so some time ago: a number that was taken again
// would be answered what the command was answered that had it first. So numbers go on from the nanosecond of the start: earlier processes
// have taken fewer than one in each.
func numbersAfter(last ids.Sequence, started time.Duration) *numbers {
	return newNumbers(max(last, ids.Sequence(started)))
}

// take answers the next number and up to which one the replies are not needed any more. note is told the
// number before anybody else can take one.
func (n *numbers) take(note func(seq ids.Sequence)) (seq, acked ids.Sequence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	n.open[n.last] = struct{}{}
	note(n.last)
	return n.last, n.low
}

// await waits until the cluster has room for another reply. The error is that of ctx.
func (n *numbers) await(ctx context.Context) error {
	for {
		n.mu.Lock()
		if n.last-max(n.low, n.begun) < mostAhead {
			n.mu.Unlock()
			return nil
		}
		if n.raised == nil {
			n.raised = make(chan struct{})
		}
		raised := n.raised
		n.mu.Unlock()
		select {
		case <-raised:
		case <-ctx.Done():
			return fmt.Errorf("an earlier call has no answer yet: %w", ctx.Err())
		}
	}
}

// reopen is for a number that was handed out by an earlier process, and is not done.
func (n *numbers) reopen(seq ids.Sequence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[seq] = struct{}{}
	n.low = min(n.low, seq-1)
}

// done says that the reply to a number has come, or will never be asked for again.
func (n *numbers) done(seq ids.Sequence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, seq)
	low := n.low
	n.raise()
	if n.raised != nil && n.low > low {
		close(n.raised)
		n.raised = nil
	}
}

func (n *numbers) raise() {
	if n.low < n.begun {
		n.low = n.begun
		for seq := range n.open {
			n.low = min(n.low, seq-1)
		}
	}
	for n.low < n.last {
		if _, open := n.open[n.low+1]; open {
			return
		}
		n.low++
	}
}
