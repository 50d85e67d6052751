package lockhistory

import (
	"fmt"

	"lockfs/raftstore/storepb"
)

// state is the knowledge about a name from earlier events.
type state struct {
	known   bool   // earlier events show whether there is a holder
	held    uint64 // token of the holder; 0: none
	holder  string // its description
	stale   uint64 // token of the lock with an event of staleness
	highest uint64 // highest token of the name
}

// step is an event of a name.
type step struct {
	event      *storepb.Event
	era        int  // number of gaps before it
	undeclared bool // an expiry because of a host no event declares gone
}

func (s state) then(of *step) (after state, why string) {
	after, why = s.event(of.event, of.undeclared)
	after.highest = max(after.highest, of.event.GetToken())
	return after, why
}

func (s state) event(e *storepb.Event, undeclared bool) (after state, why string) {
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
		return s.free(), "" // the next event has the new holder
	}
	switch {
	case s.held != 0 && s.held != e.GetToken():
		return s, fmt.Sprintf("%s has token %d, but %s", e.GetEvent(), e.GetToken(), s.who())
	case e.GetToken() < s.highest:
		return s, fmt.Sprintf("%s has token %d, smaller than the earlier %d", e.GetEvent(), e.GetToken(), s.highest)
	}
	switch e.GetEvent() {
	case "lock_released":
		if s.known && s.held == 0 {
			return s, fmt.Sprintf("token %d released it, but %s", e.GetToken(), s.who())
		}
		return s.free(), ""
	case "lock_removed":
		if s.known && s.stale != e.GetToken() && !byForce(e) { // a renamed lock stays stale
			if why := doubtEvidence(e); why != "" {
				return s, fmt.Sprintf("lockfs removed it without an event that it was stale, and %s; %s", why, s.who())
			}
		}
		return s.free(), ""
	case "lock_stale":
		if why := doubtEvidence(e); why != "" {
			return s, why
		}
		if undeclared {
			return s, fmt.Sprintf("it expired because host %s was gone for good, without a host_forgotten event", hostOfGone(e))
		}
		after.stale = e.GetToken()
	}
	return after, ""
}

func (s state) free() state {
	s.known, s.held, s.holder = true, 0, ""
	return s
}

func (s state) who() string {
	if s.held == 0 {
		return "it was free"
	}
	return fmt.Sprintf("token %d had it: %s", s.held, s.holder)
}
