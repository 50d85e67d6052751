package control

import (
	"sync"
	"syscall"

	"lockfs/formats"
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// mostStateQuestions limits the concurrent queries for reads of wait files.
const mostStateQuestions = 64

// lockStates asks the cluster for the states of locks. Readers of one name share queries: at most one is
// under way, and later readers share the next.
type lockStates struct {
	getLock func(*storepb.GetLock) (*storepb.Result, syscall.Errno)
	slots   chan struct{} // one element for each query under way

	mu    sync.Mutex
	names map[lockName]*askedName
}

type lockName struct {
	parent ids.Inode
	name   string
}

// askedName is a name with readers.
type askedName struct {
	readers int
	asking  bool           // a query is under way
	next    *stateQuestion // the query after it; nil: it has no reader yet
	last    *stateQuestion // the last one with an answer; nil: none
}

// stateQuestion is a query for the state of one lock. The other fields are set once done is closed.
type stateQuestion struct {
	done  chan struct{}
	errno syscall.Errno
	found string    // a state that ends a wait; empty: the lock is held
	index ids.Index // the last command in the answer
}

func newLockStates(getLock func(*storepb.GetLock) (*storepb.Result, syscall.Errno)) *lockStates {
	return &lockStates{getLock: getLock, slots: make(chan struct{}, mostStateQuestions), names: make(map[lockName]*askedName)}
}

// enter adds a reader of a name.
func (l *lockStates) enter(name lockName) (n *askedName, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n = l.names[name]; n == nil {
		n = new(askedName)
		l.names[name] = n
	}
	n.readers++
	return n, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n.readers--; n.readers == 0 {
			delete(l.names, name)
		}
	}
}

// ask returns a query which is newer than another one, or begins after this call.
func (l *lockStates) ask(name lockName, n *askedName, than *stateQuestion) *stateQuestion {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.last != nil && than != nil && n.last.index > than.index {
		return n.last
	}
	if n.next != nil {
		return n.next
	}
	q := &stateQuestion{done: make(chan struct{})}
	if n.asking {
		n.next = q
		return q
	}
	n.asking = true
	go l.askAll(name, n, q)
	return q
}

// askAll repeats queries for a name until one gets no new reader.
func (l *lockStates) askAll(name lockName, n *askedName, q *stateQuestion) {
	for q != nil {
		l.slots <- struct{}{}
		q.ask(l.getLock, name)
		<-l.slots
		l.mu.Lock()
		if n.last = q; q.errno != 0 {
			n.last = nil
		}
		q, n.next = n.next, nil
		n.asking = q != nil
		l.mu.Unlock()
	}
}

func (q *stateQuestion) ask(getLock func(*storepb.GetLock) (*storepb.Result, syscall.Errno), name lockName) {
	defer close(q.done)
	result, errno := getLock(&storepb.GetLock{Parent: uint64(name.parent), Name: []byte(name.name), Brief: true})
	q.index = ids.Index(result.GetIndex())
	switch {
	case errno == syscall.ENOENT:
		q.found = string(formats.Free)
	case errno != 0:
		q.errno = errno
	case result.GetLocks()[0].GetState() == string(lockfact.Stale):
		q.found = string(lockfact.Stale)
	}
}
