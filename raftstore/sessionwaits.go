package raftstore

import (
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// WaitsQuestion asks which waits of a session have ended.
type WaitsQuestion struct {
	Session    ids.Session
	After      ids.Index            // of the last answer; 0: the session asks for all waiting lock requests
	Names      namespace.NameFilter // of the names with awaited changes; empty: none
	NamesAfter ids.Index            // the last command with changes known to the session
	Events     bool                 // it waits for an event after LastEvent
	LastEvent  uint64               // number of the last event known to the session
}

// Waits answers a WaitsQuestion.
type Waits struct {
	Index     ids.Index            // the last command in this answer
	Whole     bool                 // Waiting is set, in place of Granted and Ended
	Granted   []ids.Sequence       // granted lock requests
	Ended     []ids.Sequence       // other ended lock requests
	Waiting   []*storepb.AwaitLock // all waiting lock requests
	Names     []namespace.NameKey  // changed names
	Missed    bool                 // other names may have changed too
	LastEvent uint64               // number of the last event
}

func (w *Waits) ends(q *WaitsQuestion) bool {
	return w.Whole || w.Missed || len(w.Granted)+len(w.Ended)+len(w.Names) > 0 || q.Events && w.LastEvent != q.LastEvent
}

// sessionWaits holds the ends of waits, and the pending questions about them: one for each waiting session. A
// command costs in proportion to these sessions, never to the waits.
type sessionWaits struct {
	requests recent[*storepb.AwaitLock] // became locks, were interrupted or dropped
	names    recent[namespace.NameKey]  // changed
	asking   map[ids.Session]map[*askingWaits]struct{}
	wide     map[*askingWaits]struct{} // those about names or events too
	event    uint64                    // number of the last one
}

// askingWaits is a pending question.
type askingWaits struct {
	*WaitsQuestion
	news chan struct{} // holds one
}

func newSessionWaits(ns *namespace.Namespace) *sessionWaits {
	s := &sessionWaits{asking: make(map[ids.Session]map[*askingWaits]struct{}), wide: make(map[*askingWaits]struct{})}
	s.restart(ns)
	return s
}

// restart begins with another state, of which only the waiting requests are known.
func (s *sessionWaits) restart(ns *namespace.Namespace) {
	s.requests.restart(ns.Index())
	s.names.restart(ns.Index())
	s.event = ns.LastEvent()
	s.wakeAll()
}

func (s *sessionWaits) applied(ns *namespace.Namespace) {
	ended, names := ns.EndedWaits(), ns.ChangedNames()
	s.requests.add(ns.Index(), ended)
	s.names.add(ns.Index(), names)
	for _, request := range ended {
		for a := range s.asking[ids.Session(request.GetSession())] {
			a.wake()
		}
	}
	isEvent := ns.LastEvent() != s.event
	s.event = ns.LastEvent()
	for a := range s.wide {
		if a.Events && isEvent || slices.ContainsFunc(names, a.Names.Has) {
			a.wake()
		}
	}
}

func (s *sessionWaits) wakeAll() {
	for _, all := range s.asking {
		for a := range all {
			a.wake()
		}
	}
}

func (a *askingWaits) wake() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

func (s *sessionWaits) begin(q *WaitsQuestion) *askingWaits {
	a := &askingWaits{q, make(chan struct{}, 1)}
	if s.asking[q.Session] == nil {
		s.asking[q.Session] = make(map[*askingWaits]struct{})
	}
	s.asking[q.Session][a] = struct{}{}
	if q.Events || len(q.Names) > 0 {
		s.wide[a] = struct{}{}
	}
	return a
}

func (s *sessionWaits) end(a *askingWaits) {
	delete(s.wide, a)
	delete(s.asking[a.Session], a)
	if len(s.asking[a.Session]) == 0 {
		delete(s.asking, a.Session)
	}
}

func (s *sessionWaits) answer(ns *namespace.Namespace, q *WaitsQuestion) *Waits {
	w := &Waits{Index: ns.Index(), LastEvent: ns.LastEvent()}
	if ended, known := s.requests.since(q.After); known && isKnown(ns, q.After) {
		w.addRequests(ns, q.Session, ended)
	} else {
		w.Whole, w.Waiting = true, ns.Waits(q.Session)
	}
	if len(q.Names) == 0 {
		return w
	}
	names, known := s.names.since(q.NamesAfter)
	if w.Missed = !known || !isKnown(ns, q.NamesAfter); w.Missed {
		return w
	}
	for _, name := range names {
		if q.Names.Has(name.item) {
			w.Names = append(w.Names, name.item)
		}
	}
	return w
}

// isKnown reports whether a command is one of this state. A later one is of another history of the cluster.
func isKnown(ns *namespace.Namespace, index ids.Index) bool { return index != 0 && index <= ns.Index() }

func (w *Waits) addRequests(ns *namespace.Namespace, session ids.Session, ended []recentItem[*storepb.AwaitLock]) {
	for _, end := range ended {
		if ids.Session(end.item.GetSession()) != session {
			continue
		}
		if seq := ids.Sequence(end.item.GetSeq()); ns.AwaitLock(end.item).GetCode() == storepb.Code_OK {
			w.Granted = append(w.Granted, seq)
		} else {
			w.Ended = append(w.Ended, seq)
		}
	}
}
