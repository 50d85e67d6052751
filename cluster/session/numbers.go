package session

import "sync"

// numbers hands out a session's command numbers, and knows up to which one every reply has come.
type numbers struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]struct{} // handed out, not done
	low  uint64              // every number up to this one is done
}

// newNumbers goes on after last; all up to that are done.
func newNumbers(last uint64) *numbers {
	return &numbers{last: last, low: last, open: make(map[uint64]struct{})}
}

// take answers the next number and up to which one the replies are not needed any more. note is told the
// number before anybody else can take one.
func (n *numbers) take(note func(seq uint64)) (seq, acked uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	n.open[n.last] = struct{}{}
	note(n.last)
	return n.last, n.low
}

// done says that the reply to a number has come, or will never be asked for again.
func (n *numbers) done(seq uint64) {
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
