package session

import (
	"sync"

	"lockfs/raftstore/ids"
)

// numbers hands out a session's command numbers, and knows up to which one every reply has come.
type numbers struct {
	mu   sync.Mutex
	last ids.Sequence
	open map[ids.Sequence]struct{} // handed out, not done
	low  ids.Sequence              // every number up to this one is done
}

// newNumbers goes on after last; all up to that are done.
func newNumbers(last ids.Sequence) *numbers {
	return &numbers{last: last, low: last, open: make(map[ids.Sequence]struct{})}
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
	n.raise()
}

func (n *numbers) raise() {
	for n.low < n.last {
		if _, open := n.open[n.low+1]; open {
			return
		}
		n.low++
	}
}
