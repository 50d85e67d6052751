package session

import (
	"math"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// stateInterval is the least time between two ends of waits for any command.
const stateInterval = time.Second

const noIndex = ids.Index(math.MaxUint64)

// changeWaits are the waits of this client except lock waits: for changes of names, for events, and for any
// command. Waits for the same name share one entry, and so do all waits for events.
type changeWaits struct {
	question *waitsQuestion

	mu    sync.Mutex
	names map[namespace.NameKey]*nameWait
	told  ids.Index // the leader has reported changes of the known names up to this command
	from  ids.Index // the other names are known up to this command; noIndex: there are none

	events      news
	event       uint64 // number of the last reported event
	eventsAsked bool   // the current question includes events

	state   news
	index   ids.Index // last command reported to waits
	stateAt time.Time // time of that report
}

// nameWait is a name with waits for its changes.
type nameWait struct {
	news
	asked bool      // the current question includes this name
	from  ids.Index // the question covers changes after this command
	ended ids.Index // command of the last reported change
}

type news struct {
	waits int
	there chan struct{} // closed at the end of the waits; nil before the first
}

// add returns a channel, closed at the end of the wait.
func (n *news) add() <-chan struct{} {
	if n.there == nil {
		n.there = make(chan struct{})
	}
	n.waits++
	return n.there
}

func (n *news) tell() {
	if n.there != nil {
		close(n.there)
		n.there = nil
	}
}

var ended = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newChangeWaits(question *waitsQuestion) *changeWaits {
	return &changeWaits{question: question, names: make(map[namespace.NameKey]*nameWait), from: noIndex}
}

func (w *changeWaits) addName(key namespace.NameKey, since ids.Index) (changed <-chan struct{}, end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.names[key]
	if n == nil {
		n = new(nameWait)
		w.names[key] = n
	}
	changed = n.add()
	switch {
	case n.asked && since < n.ended:
		changed = ended // the change may have come after the command
	case !n.asked || since < n.from:
		n.asked = false
		w.from = min(w.from, since)
		w.askAnew()
	}
	return changed, sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n.waits--; n.waits == 0 {
			delete(w.names, key)
		}
	})
}

func (w *changeWaits) askAnew() {
	notify(w.question.begun)
	notify(w.question.outdated)
}

func (w *changeWaits) addEvent(number uint64) (there <-chan struct{}, end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if there = w.events.add(); w.event > number {
		there = ended
	} else if !w.eventsAsked {
		w.askAnew()
	}
	return there, w.endOf(&w.events)
}

func (w *changeWaits) endOf(n *news) (end func()) {
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		n.waits--
	})
}

func (w *changeWaits) addState(index ids.Index) (known ids.Index, changed <-chan struct{}, end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if changed = w.state.add(); w.index > index {
		changed = ended
	}
	notify(w.question.begun)
	return w.index, changed, w.endOf(&w.state)
}

func (w *changeWaits) areNone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	isNone := len(w.names)+w.events.waits+w.state.waits == 0
	if isNone {
		w.eventsAsked = false
	}
	return isNone
}

// ask adds all current waits to a question.
func (w *changeWaits) ask(req *clusterpb.EndedWaitsRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.eventsAsked = w.events.waits > 0; w.eventsAsked {
		req.Events, req.LastEvent = true, w.event
	}
	after := w.from
	w.from = noIndex
	if len(w.names) == 0 {
		return
	}
	filter := namespace.NewNameFilter(len(w.names))
	for key, n := range w.names {
		if filter.Add(key); n.asked {
			after = min(after, w.told)
		}
	}
	for _, n := range w.names {
		if !n.asked {
			n.asked, n.from, n.ended = true, after, 0
		}
	}
	req.Names, req.NamesAfter = filter, uint64(after)
}

// again repeats the contents of a question without a reply.
func (w *changeWaits) again(req *clusterpb.EndedWaitsRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(req.GetNames()) > 0 {
		w.from = min(w.from, ids.Index(req.GetNamesAfter()))
	}
}

// tell ends waits according to a reply of the leader.
func (w *changeWaits) tell(reply *clusterpb.EndedWaitsReply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	index := ids.Index(reply.GetIndex())
	w.told = index
	changed := func(n *nameWait) {
		n.ended = index
		n.tell()
	}
	for _, key := range reply.GetNames() {
		if n := w.names[namespace.NameKey(key)]; n != nil {
			changed(n)
		}
	}
	for _, n := range w.names {
		if reply.GetMissed() && n.asked {
			changed(n)
		}
	}
	if last := reply.GetLastEvent(); last != w.event { // another history of the cluster may have fewer
		w.event = last
		w.events.tell()
	}
	if now := time.Now(); index != w.index && now.Sub(w.stateAt) >= stateInterval {
		w.index, w.stateAt = index, now
		w.state.tell()
	}
}

// waitsQuestion is the one repeated question about all waits of this client. A wait needs no call of its own.
type waitsQuestion struct {
	begun    chan struct{} // holds one element: a wait was added
	outdated chan struct{} // holds one element: the current question is out of date
}

func newWaitsQuestion() *waitsQuestion {
	return &waitsQuestion{begun: make(chan struct{}, 1), outdated: make(chan struct{}, 1)}
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
