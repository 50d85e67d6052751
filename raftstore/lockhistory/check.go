package lockhistory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"lockfs/raftstore/linear"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// History is what is judged.
type History struct {
	Events []*storepb.Event // in the order of their numbers, which may have gaps
	Calls  []*lockjson.Call
	// Whole: the events are all that there ever were.
	Whole bool
}

// most is how many contradictions are looked for among events.
const most = 100

// Check answers what cannot have been, by path. After a contradiction a name is judged as if nothing had been before. within bounds the
// search for each stretch of a name, and the error is an [Undecided].
func (h *History) Check(within time.Duration) ([]*Contradiction, error) {
	found := h.checkTime()
	for _, on := range h.byPlace() {
		for begin := 0; begin < len(on.operations) && len(found) < most; {
			contradiction, last, err := on.check(begin, within)
			if err != nil {
				return nil, err
			}
			if contradiction != nil {
				found = append(found, contradiction)
			}
			begin = last
		}
	}
	kernel, err := checkKernelLocks(h.Calls, within)
	slices.SortStableFunc(found, func(a, b *Contradiction) int { return strings.Compare(a.Path, b.Path) })
	return append(found, kernel...), err
}

// checkTime finds where cluster time goes back, which it never does.
func (h *History) checkTime() (found []*Contradiction) {
	for i, e := range h.Events {
		if i > 0 && e.GetTime() < h.Events[i-1].GetTime() && len(found) < most {
			found = append(found, &Contradiction{
				Path: string(e.GetPath()), Why: "cluster time goes back", Piece: []*Step{{Event: h.Events[i-1]}, {Event: e}},
			})
		}
	}
	return found
}

// onPlace is what happened to a name.
type onPlace struct {
	path       string
	operations []*operation
	byIndex    map[uint64][]*operation // those that are events
}

// always is the interval of what may have been at any time.
const always = math.MinInt64 / 2

func (h *History) byPlace() []*onPlace {
	gaps := gapsOf(h.Events)
	all := make(map[place]*onPlace)
	var order []*onPlace
	forgotten := make(map[string]uint64) // hosts, by when they were declared gone last
	for _, e := range h.Events {
		if e.GetEvent() == "host_forgotten" {
			forgotten[e.GetHost()] = e.GetNumber()
		}
		if !isOfLock(e) {
			continue
		}
		at := placeOf(e)
		on, known := all[at]
		if !known {
			on = &onPlace{byIndex: make(map[uint64][]*operation)}
			all[at] = on
			order = append(order, on)
		}
		on.path = string(e.GetPath())
		o := &operation{Step: Step{Event: e}, index: indexOf(e), era: gaps.before(e), from: always, until: linear.Never}
		if host := hostOfGone(e); host != "" && h.Whole {
			_, was := forgotten[host]
			o.forgotten = func(string) bool { return was }
		}
		on.operations = append(on.operations, o)
		on.byIndex[o.index] = append(on.byIndex[o.index], o)
	}
	for _, c := range h.Calls {
		era, known := gaps.era(c.Index)
		if !known {
			continue
		}
		for _, told := range judged(c) {
			if on, known := all[told.place]; known {
				on.add(told, era)
			}
		}
	}
	for _, on := range order {
		on.sort()
	}
	return order
}

// indexOf is of the command that did what an event tells of: an acquisition is told up to a second later.
func indexOf(e *storepb.Event) uint64 {
	if e.GetEvent() == "lock_acquired" {
		return e.GetToken()
	}
	return e.GetIndex()
}

// toldCall is what a call says of a name.
type toldCall struct {
	place place
	call  *lockjson.Call // as if it had been to that name alone
}

// judged is what can be judged of a call: what its program was told that it had done.
func judged(c *lockjson.Call) (told []toldCall) {
	if c.Error != "" || c.Index == 0 {
		return nil
	}
	from, to := place{c.Directory, c.Name}, place{c.ToDirectory, c.ToName}
	switch c.Call {
	case lockjson.CallMake, lockjson.CallRemove:
		told = append(told, toldCall{from, c})
	case lockjson.CallRename:
		removal := *c
		removal.Call = lockjson.CallRemove
		told = append(told, toldCall{from, &removal})
		if c.Exclusive {
			making := *c
			making.Call = lockjson.CallMake
			told = append(told, toldCall{to, &making})
		}
	}
	return told
}

// add takes a call for what an event tells of if it is of the same command, and else for an operation by itself.
func (on *onPlace) add(told toldCall, era int) {
	from, until := told.call.Begin.Add(-told.call.Within).UnixNano(), told.call.End.Add(told.call.Within).UnixNano()
	step := Step{Call: told.call}
	for _, o := range on.byIndex[told.call.Index] {
		acquired := o.Event.GetEvent() == "lock_acquired"
		ended := o.Event.GetEvent() == "lock_released" || o.Event.GetEvent() == "lock_removed"
		if told.call.Call == lockjson.CallMake && acquired || told.call.Call == lockjson.CallRemove && ended {
			o.from, o.until, o.told = from, until, &step
			return
		}
	}
	on.operations = append(on.operations, &operation{Step: step, index: told.call.Index, era: era, from: from, until: until})
}

// sort has the operations in the order of the log, events of one command as they were told. A name is free before it is made by the
// same command.
func (on *onPlace) sort() {
	slices.SortStableFunc(on.operations, func(a, b *operation) int {
		if a.era != b.era {
			return cmp.Compare(a.era, b.era)
		}
		if a.Event != nil && b.Event != nil {
			return cmp.Compare(a.Event.GetNumber(), b.Event.GetNumber())
		}
		return cmp.Compare(a.index, b.index)
	})
	for i, o := range on.operations {
		o.place = i
	}
}

// stretch is how many operations are judged at a time at least: a search takes memory by the square of that.
const stretch = 500

// check judges one stretch after the other from a place on, up to the first contradiction, and answers where to go on. A stretch ends where no
// call is under way, and where events are missing: then nothing is known of the name any more.
func (on *onPlace) check(begin int, within time.Duration) (found *Contradiction, end int, err error) {
	now := state{next: begin}
	for begin < len(on.operations) {
		end := on.stretchFrom(begin)
		operations := on.operations[begin:end]
		switch porcupine.CheckOperationsTimeout(modelFrom(now), searched(operations), within) {
		case porcupine.Illegal:
			found, end = on.contradiction(begin, end, now)
			return found, end, nil
		case porcupine.Unknown:
			return nil, end, &Undecided{on.path}
		}
		for _, o := range operations {
			now, _ = now.step(o)
		}
		if begin = end; end < len(on.operations) && on.operations[end].era != on.operations[end-1].era {
			now = state{next: end}
		}
	}
	return nil, begin, nil
}

func (on *onPlace) stretchFrom(begin int) (end int) {
	earliest := make([]int64, len(on.operations)+1) // until of what comes later
	earliest[len(on.operations)] = linear.Never
	for i := len(on.operations) - 1; i >= begin; i-- {
		earliest[i] = min(earliest[i+1], on.operations[i].until)
	}
	latest := int64(always)
	for i := begin; i < len(on.operations); i++ {
		if i > begin && on.operations[i].era != on.operations[i-1].era || i-begin >= stretch && latest < earliest[i] {
			return i
		}
		latest = max(latest, on.operations[i].from)
	}
	return len(on.operations)
}

// searched are the operations as porcupine wants them. What has no time keeps its place, which makes the search short.
func searched(operations []*operation) []porcupine.Operation {
	var all []porcupine.Operation
	for i, o := range operations {
		call := o.from
		if call == always {
			call += int64(i)
		}
		all = append(all, porcupine.Operation{ClientId: 0, Input: o, Call: call, Return: o.until})
	}
	return all
}

// contradiction is the first there is in a stretch, and the smallest part of it that contradicts itself, and what comes after that.
func (on *onPlace) contradiction(begin, end int, now state) (found *Contradiction, after int) {
	for i := begin; i < end; i++ {
		next, why := now.step(on.operations[i])
		if why == "" {
			why = late(on.operations[begin : i+1])
		}
		if why != "" {
			return on.smallest(begin, i, why), i + 1
		}
		now = next
	}
	return &Contradiction{Path: on.path, Why: linear.ErrImpossible.Error(), Piece: piece(on.operations[begin:end])}, end
}

// late says of the last operation that one which came before it in the log began after it had returned; empty: none did.
func late(operations []*operation) string {
	last := operations[len(operations)-1]
	for _, before := range operations {
		if before.from > last.until {
			return fmt.Sprintf("a call that had returned by %s comes in the log after one that began later, at %s", clock(last.until), clock(before.from))
		}
	}
	return ""
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// smallest looks for the shortest stretch up to an operation that cannot have been, whatever was before it.
func (on *onPlace) smallest(begin, last int, why string) *Contradiction {
	for first := last; first > begin; first-- {
		if part := on.operations[first : last+1]; !possible(part) {
			return &Contradiction{Path: on.path, Why: why, Piece: piece(without(part))}
		}
	}
	return &Contradiction{Path: on.path, Why: why, Piece: piece(without(on.operations[begin : last+1]))}
}

// possible judges operations by themselves.
func possible(operations []*operation) bool {
	now := state{}
	for i, o := range operations {
		renumbered := *o
		renumbered.place = i
		after, why := now.step(&renumbered)
		if why != "" || late(operations[:i+1]) != "" {
			return false
		}
		now = after
	}
	return true
}

// without leaves out the steps in the middle that the contradiction does not need: calls, and what changes nothing.
func without(operations []*operation) []*operation {
	for i := len(operations) - 2; i > 0; i-- {
		o := operations[i]
		changes := o.Event != nil && o.Event.GetEvent() != "removal_refused"
		if rest := slices.Delete(slices.Clone(operations), i, i+1); !changes && !possible(rest) {
			operations = rest
		}
	}
	return operations
}

func piece(operations []*operation) (steps []*Step) {
	for _, o := range operations {
		if o.told != nil {
			steps = append(steps, o.told)
		}
		steps = append(steps, &o.Step)
	}
	return steps
}

// Paths are those of all locks that events tell of.
func (h *History) Paths() []string {
	paths := make(map[string]bool)
	for _, e := range h.Events {
		if isOfLock(e) {
			paths[string(e.GetPath())] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}
