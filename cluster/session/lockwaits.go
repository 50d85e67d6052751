package session

import (
	"math"
	"sync"
	"sync/atomic"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// maxWaitQuestions limits the concurrent queries for waits without a known outcome in waitsQuestion.
const maxWaitQuestions = 64

// lockWaits are the lock requests for which this client waits. The client adds a request before it sends it,
// so no end is lost.
type lockWaits struct {
	mu       sync.Mutex
	all      map[callNumber]*lockWait
	last     uint64 // number of the newest wait
	whole    bool   // the next question asks for all waiting requests
	question *waitsQuestion
	left     map[lockWanted][]*storepb.AwaitLock // requests of a killed process
	mayLeave atomic.Bool                         // there may be such requests
	asking   chan struct{}                       // one element for each current query
}

type lockWanted struct {
	session    ids.Session
	ino        ids.Inode
	kind       storepb.LockKind
	owner      ids.Owner
	mode       storepb.LockType
	start, end uint64
}

type lockWait struct {
	number  uint64        // in order of addition
	news    chan struct{} // holds one element: the request may have ended
	granted atomic.Bool   // the owner has the lock
}

func newLockWaits(question *waitsQuestion) *lockWaits {
	return &lockWaits{all: make(map[callNumber]*lockWait), question: question, asking: make(chan struct{}, maxWaitQuestions)}
}

// add returns the wait for a request. isOld means a new wait may have ended already: the client then asks for
// all waits.
func (l *lockWaits) add(request callNumber, isOld bool) *lockWait {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w, found := l.all[request]; found {
		return w
	}
	l.last++
	w := &lockWait{number: l.last, news: make(chan struct{}, 1)}
	l.all[request] = w
	notify(l.question.begun)
	if isOld {
		l.whole = true
		notify(l.question.outdated)
	}
	return w
}

func (l *lockWaits) end(request callNumber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, request)
}

// leave records the requests of a killed process.
func (l *lockWaits) leave(requests []*storepb.AwaitLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = make(map[lockWanted][]*storepb.AwaitLock)
	for _, r := range requests {
		wanted := wantedBy(r)
		l.left[wanted] = append(l.left[wanted], r)
	}
}

func wantedBy(r *storepb.AwaitLock) lockWanted {
	return lockWanted{
		ids.Session(r.GetSession()), ids.Inode(r.GetIno()), r.GetKind(), ids.Owner(r.GetOwner()), r.GetType(), r.GetStart(), r.GetEnd(),
	}
}

// adopt returns a request of a killed process for the lock in op, and adds a wait for it; nil: there is none.
func (l *lockWaits) adopt(op *storepb.TakeLock, session ids.Session) *storepb.AwaitLock {
	wanted := &storepb.AwaitLock{
		Session: uint64(session), Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(), Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
	}
	if op.GetKind() == storepb.LockKind_FLOCK {
		wanted.Start, wanted.End = 0, math.MaxInt64
	}
	key := wantedBy(wanted)
	l.mu.Lock()
	left := l.left[key]
	if len(left) > 0 {
		l.left[key] = left[1:]
	}
	l.mu.Unlock()
	if len(left) == 0 {
		return nil
	}
	l.add(numberOf(left[0]), true)
	return left[0]
}

// abandon returns the left requests which no program has adopted.
func (l *lockWaits) abandon() (requests []*storepb.AwaitLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, left := range l.left {
		requests = append(requests, left...)
	}
	l.left = nil
	l.mayLeave.Store(false)
	return requests
}

func (l *lockWaits) areNone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) == 0
}

// ask returns the command after which the next question asks for ends, and the newest wait it covers. Command
// 0 means all waiting requests.
func (l *lockWaits) ask(after ids.Index) (ids.Index, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole {
		l.whole, after = false, 0
	}
	return after, l.last
}

func (l *lockWaits) wantsWhole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// endOthers wakes the waits of other sessions: they have ended with these.
func (l *lockWaits) endOthers(session ids.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for request, w := range l.all {
		if request.session != session {
			notify(w.news)
		}
	}
}

// tell processes the leader's reply to a question about waits up to newest.
func (l *lockWaits) tell(session ids.Session, newest uint64, reply *clusterpb.EndedWaitsReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reply.GetWhole() {
		waiting := make(map[ids.Sequence]bool)
		for _, request := range reply.GetWaiting() {
			waiting[ids.Sequence(request.GetSeq())] = true
		}
		for request, w := range l.all {
			if request.session == session && w.number <= newest && !waiting[request.seq] {
				notify(w.news)
			}
		}
	}
	for _, seq := range reply.GetGranted() {
		if w := l.all[callNumber{session, ids.Sequence(seq)}]; w != nil {
			w.granted.Store(true)
			notify(w.news)
		}
	}
	for _, seq := range reply.GetEnded() {
		if w := l.all[callNumber{session, ids.Sequence(seq)}]; w != nil {
			notify(w.news)
		}
	}
}

// again repeats an unanswered question for all waiting requests.
func (l *lockWaits) again(after ids.Index) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = l.whole || after == 0
}

func numberOf(request *storepb.AwaitLock) callNumber {
	return callNumber{ids.Session(request.GetSession()), ids.Sequence(request.GetSeq())}
}
