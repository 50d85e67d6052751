package session

import (
	"math"
	"sync"
	"sync/atomic"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// maxWaitQuestions is how many waits may be asked about at once that the subscription could not tell the outcome of.
const maxWaitQuestions = 64

// lockWaits are the requests for locks that this client waits for. A request is added before it is sent, so no end comes too early.
type lockWaits struct {
	mu       sync.Mutex
	all      map[callNumber]*lockWait
	last     uint64 // number of the wait that was added last
	whole    bool   // the next question is for all that wait
	question *waitsQuestion
	left     map[lockWanted][]*storepb.AwaitLock // requests of a process that was killed
	mayLeave atomic.Bool                         // there may be such requests
	asking   chan struct{}                       // has an element for each wait that is asked about
}

// lockWanted is the lock that a request asks for.
type lockWanted struct {
	session    ids.Session
	ino        ids.Inode
	kind       storepb.LockKind
	owner      ids.Owner
	mode       storepb.LockType
	start, end uint64
}

// lockWait is one of them.
type lockWait struct {
	number  uint64        // in the order in which they were added
	news    chan struct{} // holds one: the request may have ended
	granted atomic.Bool   // its owner has the lock
}

func newLockWaits(question *waitsQuestion) *lockWaits {
	return &lockWaits{all: make(map[callNumber]*lockWait), question: question, asking: make(chan struct{}, maxWaitQuestions)}
}

// add returns the wait for a request. If that is not known yet it may have ended before: isOld says so, and all waits are asked for.
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

// end is for a request that is not waited for any more.
func (l *lockWaits) end(request callNumber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, request)
}

// leave notes the requests that a process has left which was killed.
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

// adopt returns a left request for the lock in op, and notes it as waited for; nil: there is none.
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

// abandon returns the requests that were left and not adopted: no program waits for them any more.
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

// ask returns after which command the next question asks for ends, 0 for all that wait, and the newest wait that the answer covers.
func (l *lockWaits) ask(after ids.Index) (ids.Index, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole {
		l.whole, after = false, 0
	}
	return after, l.last
}

// wantsWhole reports whether the next question is for all that wait.
func (l *lockWaits) wantsWhole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// endOthers has the waits of other sessions looked at: they ended with these.
func (l *lockWaits) endOthers(session ids.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for request, w := range l.all {
		if request.session != session {
			notify(w.news)
		}
	}
}

// tell passes on the leader's answer to a question about waits up to a number.
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

// again has a question for all that wait asked once more that was not answered.
func (l *lockWaits) again(after ids.Index) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = l.whole || after == 0
}

func numberOf(request *storepb.AwaitLock) callNumber {
	return callNumber{ids.Session(request.GetSession()), ids.Sequence(request.GetSeq())}
}
