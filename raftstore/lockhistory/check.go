package lockhistory

import (
	"maps"
	"slices"
	"strings"

	"lockfs/raftstore/storepb"
)

// History is a list of events to check.
type History struct {
	Events []*storepb.Event // in the order of their numbers, which may have gaps
	// Whole says that these are all events ever.
	Whole bool
}

// Contradiction is an impossible part of a history.
type Contradiction struct {
	Path  string // last path of the lock
	Why   string
	Piece []*storepb.Event // the smallest part of the history that is impossible too, in order
}

// most is the most contradictions found.
const most = 100

// Check returns the contradictions, by path. After a contradiction, the check of a name starts again without
// earlier events.
func (h *History) Check() []*Contradiction {
	found := h.checkTime()
	for _, on := range h.byPlace() {
		found = on.check(found)
	}
	slices.SortStableFunc(found, func(a, b *Contradiction) int { return strings.Compare(a.Path, b.Path) })
	return found
}

// checkTime finds events with an earlier cluster time than the event before: cluster time never goes back.
func (h *History) checkTime() (found []*Contradiction) {
	for i, e := range h.Events {
		if i > 0 && e.GetTime() < h.Events[i-1].GetTime() && len(found) < most {
			found = append(found, &Contradiction{
				Path: string(e.GetPath()), Why: "cluster time goes back", Piece: []*storepb.Event{h.Events[i-1], e},
			})
		}
	}
	return found
}

// onPlace is the history of a name.
type onPlace struct {
	path  string
	steps []*step
}

func (h *History) byPlace() []*onPlace {
	gaps := gapsOf(h.Events)
	all := make(map[place]*onPlace)
	var order []*onPlace
	forgotten := make(map[string]bool) // hosts declared gone
	for _, e := range h.Events {
		if e.GetEvent() == "host_forgotten" {
			forgotten[e.GetHost()] = true
		}
		if !isOfLock(e) {
			continue
		}
		on, known := all[placeOf(e)]
		if !known {
			on = new(onPlace)
			all[placeOf(e)] = on
			order = append(order, on)
		}
		on.path = string(e.GetPath())
		host := hostOfGone(e)
		on.steps = append(on.steps, &step{event: e, era: gaps.before(e), undeclared: host != "" && h.Whole && !forgotten[host]})
	}
	return order
}

func (on *onPlace) check(found []*Contradiction) []*Contradiction {
	begin := 0 // of the known events
	var now state
	for i, s := range on.steps {
		if i > 0 && s.era != on.steps[i-1].era {
			now, begin = state{}, i
		}
		next, why := now.then(s)
		if why == "" {
			now = next
			continue
		}
		if len(found) == most {
			return found
		}
		found = append(found, on.smallest(begin, i, why))
		now, begin = state{}, i+1
	}
	return found
}

// smallest finds the shortest impossible sequence of steps up to a step.
func (on *onPlace) smallest(begin, last int, why string) *Contradiction {
	for first := last; first > begin; first-- {
		if part := on.steps[first : last+1]; !possible(part) {
			return &Contradiction{on.path, why, piece(part)}
		}
	}
	return &Contradiction{on.path, why, piece(on.steps[begin : last+1])}
}

// possible reports whether steps are possible after an unknown history.
func possible(steps []*step) bool {
	now := state{}
	for _, s := range steps {
		after, why := now.then(s)
		if why != "" {
			return false
		}
		now = after
	}
	return true
}

// piece returns the events, without harmless ones in the middle unneeded for the contradiction.
func piece(steps []*step) (events []*storepb.Event) {
	for i := len(steps) - 2; i > 0; i-- {
		if rest := slices.Delete(slices.Clone(steps), i, i+1); steps[i].event.GetEvent() == "removal_refused" && !possible(rest) {
			steps = rest
		}
	}
	for _, s := range steps {
		events = append(events, s.event)
	}
	return events
}

// Paths returns the paths of all locks in the events.
func (h *History) Paths() []string {
	paths := make(map[string]bool)
	for _, e := range h.Events {
		if isOfLock(e) {
			paths[string(e.GetPath())] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}
