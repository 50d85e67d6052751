package session

import (
	"math"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// stateInterval is how often waits for any command end at most.
const stateInterval = time.Second

// noIndex is later than all commands.
const noIndex = ids.Index(math.MaxUint64)

// changeWaits are what this client waits for apart from locks: changes of names, events, and commands of any kind. Any number of waits for the same
// name are one, and so are all waits for events.
type changeWaits struct {
	question *waitsQuestion

	mu    sync.Mutex
	names map[namespace.NameKey]*nameWait
	told  ids.Index // up to which command the leader has told of changes of the names that it was asked for
	from  ids.Index // up to which command the others are known; noIndex: there are none

	events      news
	event       uint64 // number of the last event that the leader has told of
	eventsAsked bool   // the question under way is for events too

	state   news
	index   ids.Index // last command that waits were told of
	stateAt time.Time // when that was
}

// nameWait is a name for whose changes there are waits.
type nameWait struct {
	news
	asked bool      // the question under way is for this name too
	from  ids.Index // it was since this command
	ended ids.Index // command up to which the leader last told of a change
}

// news are waits that end together.
type news struct {
	waits int
	there chan struct{} // closed when they end; nil before the first
}

// add returns a channel that is closed when the wait ends.
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

// ended is the channel of a wait that has ended.
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

// askAnew has the question asked anew, with the waits that were added.
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

// ask has a question be about all waits that there are.
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

// again has what a question was about asked once more, as it was not answered.
func (w *changeWaits) again(req *clusterpb.EndedWaitsRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(req.GetNames()) > 0 {
		w.from = min(w.from, ids.Index(req.GetNamesAfter()))
	}
}

// tell ends the waits that an answer of the leader ends.
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

// waitsQuestion is the one question, asked again and again, about all waits of this client: a wait takes no call of its own.
type waitsQuestion struct {
	begun    chan struct{} // holds one: a wait was added
	outdated chan struct{} // holds one: the question under way is to be asked anew
}

func newWaitsQuestion() *waitsQuestion {
	return &waitsQuestion{begun: make(chan struct{}, 1), outdated: make(chan struct{}, 1)}
}

// notify leaves an element in a channel that holds one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
