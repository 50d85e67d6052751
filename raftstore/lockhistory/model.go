package lockhistory

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"lockfs/raftstore/lockjson"
)

// state is what is known of a name at a moment.
type state struct {
	known   bool   // who has it, if anybody: else that was told before there was anything to read
	held    uint64 // token of who has it; 0: nobody
	holder  string // who that is
	stale   uint64 // token of which it was told that it is stale
	highest uint64 // that the name ever had
	next    int    // of the operations on the name
}

// operation is one on a name: an event, or a call that no event tells of.
type operation struct {
	Step
	index uint64 // of the command in the log, in whose order
	place int    // among the operations on its name
	era   int    // how many gaps are before it
	// forgotten tells whether a host had been declared gone before the event; nil: nobody knows.
	forgotten func(host string) bool

	from, until int64 // within which it happened, as far as that is known
	told        *Step // the call that says so of an event
}

// modelFrom is the model of what follows a state.
func modelFrom(s state) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return s },
		Step: func(before, input, _ any) (bool, any) {
			after, why := before.(state).step(input.(*operation))
			return why == "", after
		},
	}
}

// step is the state after an operation, or why it cannot have happened in this one.
func (s state) step(o *operation) (after state, why string) {
	if o.place != s.next {
		return s, "others come before it in the log"
	}
	if o.Call != nil {
		after, why = s.call(o.Call)
	} else {
		after, why = s.event(o)
		after.highest = max(after.highest, o.Event.GetToken())
	}
	after.next = s.next + 1
	return after, why
}

func (s state) event(o *operation) (after state, why string) {
	e := o.Event
	after = s
	switch e.GetEvent() {
	case "lock_acquired":
		switch {
		case s.held != 0 && s.held != e.GetToken():
			return s, fmt.Sprintf("it was acquired with token %d while token %d had it: %s", e.GetToken(), s.held, s.holder)
		case s.held == 0 && e.GetToken() < s.highest:
			return s, fmt.Sprintf("its token %d is smaller than %d, which it had before", e.GetToken(), s.highest)
		}
		after.known, after.held, after.holder = true, e.GetToken(), holderOf(e)
		return after, ""
	case "lock_stolen":
		before := e.GetPrevious().GetToken()
		switch {
		case s.known && s.held != before:
			return s, fmt.Sprintf("it was stolen from token %d, but %s", before, s.who())
		case e.GetToken() <= before || e.GetToken() <= s.highest:
			return s, fmt.Sprintf("its token %d is no larger than %d, which it had before", e.GetToken(), max(before, s.highest))
		}
		return s.free(), "" // who has it now is told next
	}
	switch {
	case s.held != 0 && s.held != e.GetToken():
		return s, fmt.Sprintf("%s tells of token %d, but %s", e.GetEvent(), e.GetToken(), s.who())
	case e.GetToken() < s.highest:
		return s, fmt.Sprintf("%s tells of token %d, which is smaller than %d, which it had before", e.GetEvent(), e.GetToken(), s.highest)
	}
	switch e.GetEvent() {
	case "lock_released":
		if s.known && s.held == 0 {
			return s, fmt.Sprintf("token %d released it, but %s", e.GetToken(), s.who())
		}
		return s.free(), ""
	case "lock_removed":
		if s.known && s.stale != e.GetToken() && !byForce(e) { // one that is renamed stays as stale as it was
			if why := doubtEvidence(e); why != "" {
				return s, fmt.Sprintf("lockfs removed it, nothing had told that it was stale, and %s; %s", why, s.who())
			}
		}
		return s.free(), ""
	case "lock_stale":
		if why := doubtEvidence(e); why != "" {
			return s, why
		}
		if host := hostOfGone(e); host != "" && o.forgotten != nil && !o.forgotten(host) {
			return s, fmt.Sprintf("it expired since host %s was gone for good, which nobody had declared", host)
		}
		after.stale = e.GetToken()
	}
	return after, ""
}

// call is for calls that no event tells of.
func (s state) call(c *lockjson.Call) (after state, why string) {
	after = s
	switch {
	case s.held == 0:
	case c.Call == lockjson.CallMake:
		return s, fmt.Sprintf("a program was told that it had made the name while token %d had it: %s", s.held, s.holder)
	case c.Call == lockjson.CallRemove:
		return s, fmt.Sprintf("a program was told that it had removed the name, of which no event tells, and token %d still had it: %s", s.held, s.holder)
	}
	return after, ""
}

// free is the state in which nobody has the name.
func (s state) free() state {
	s.known, s.held, s.holder = true, 0, ""
	return s
}

func (s state) who() string {
	if s.held == 0 {
		return "nobody had it"
	}
	return fmt.Sprintf("token %d had it: %s", s.held, s.holder)
}
