package raftstore

import (
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// keptEndings is how many ends of waits are kept at least.
const keptEndings = 16 << 10

// endings are the requests for locks that stopped waiting lately, in the order of the log, for the mounts that wait with them. All
// replicas have the same, as far back as each of them goes.
type endings struct {
	after ids.Index // the list has all that ended with a later command
	list  []ending
	news  map[ids.Session]chan struct{} // closed once a request of the session ended; none while no call waits for that
}

// ending is a request that became a lock, was interrupted or dropped.
type ending struct {
	index   ids.Index
	request *storepb.AwaitLock
}

func newEndings(index ids.Index) *endings {
	return &endings{after: index, news: make(map[ids.Session]chan struct{})}
}

func (e *endings) add(index ids.Index, ended []*storepb.AwaitLock) {
	for _, request := range ended {
		e.list = append(e.list, ending{index, request})
		e.wake(ids.Session(request.GetSession()))
	}
	if drop := len(e.list) - keptEndings; drop > keptEndings {
		e.after = e.list[drop-1].index
		e.list = slices.Clone(e.list[drop:])
	}
}

// restart is for another state, of which only the waiting requests are known.
func (e *endings) restart(index ids.Index) {
	e.after, e.list = index, nil
	e.wakeAll()
}

func (e *endings) wake(session ids.Session) {
	if news, found := e.news[session]; found {
		close(news)
		delete(e.news, session)
	}
}

func (e *endings) wakeAll() {
	for session := range e.news {
		e.wake(session)
	}
}

// of returns the requests of a session that ended after a command. known is false if some of them may not be in the list.
func (e *endings) of(session ids.Session, after ids.Index) (ended []*storepb.AwaitLock, known bool) {
	if after < e.after {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(e.list, after+1, func(a ending, index ids.Index) int { return int(a.index) - int(index) })
	for _, a := range e.list[first:] {
		if ids.Session(a.request.GetSession()) == session {
			ended = append(ended, a.request)
		}
	}
	return ended, true
}
