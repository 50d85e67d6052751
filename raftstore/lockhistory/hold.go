package lockhistory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockfs/raftstore/storepb"
)

// Hold is a period in which a holder had a lock, according to events.
type Hold struct {
	Path   string
	Token  uint64
	Holder string
	From   time.Time      // zero: it began before the events
	Until  time.Time      // zero: it continues after the events
	Began  *storepb.Event // nil like From
	Ended  *storepb.Event // nil like Until
}

// Holds returns the holds of all names that ever had a path, between two times, in order. A zero time is no
// limit.
func (h *History) Holds(path string, from, until time.Time) (holds []*Hold) {
	for _, on := range h.byPlace() {
		if !slices.ContainsFunc(on.steps, func(s *step) bool { return string(s.event.GetPath()) == path }) {
			continue
		}
		var now *Hold
		for _, s := range on.steps {
			now = now.then(s.event, &holds)
		}
	}
	holds = slices.DeleteFunc(holds, func(h *Hold) bool {
		return !until.IsZero() && h.From.After(until) || !from.IsZero() && !h.Until.IsZero() && h.Until.Before(from)
	})
	slices.SortStableFunc(holds, func(a, b *Hold) int { return a.From.Compare(b.From) })
	return holds
}

func (hold *Hold) then(e *storepb.Event, all *[]*Hold) *Hold {
	switch e.GetEvent() {
	case "lock_acquired":
		if hold != nil && hold.Token == e.GetToken() {
			hold.Holder = holderOf(e)
			return hold
		}
		hold = &Hold{Path: string(e.GetPath()), Token: e.GetToken(), Holder: holderOf(e), From: time.Unix(0, since(e)).UTC(), Began: e}
		*all = append(*all, hold)
		return hold
	case "lock_stolen", "lock_released", "lock_removed":
		if hold == nil {
			before := e
			if e.GetPrevious() != nil {
				before = e.GetPrevious()
			}
			hold = &Hold{Path: string(e.GetPath()), Token: before.GetToken(), Holder: holderOf(before)}
			*all = append(*all, hold)
		}
		hold.Until, hold.Ended = time.Unix(0, e.GetTime()).UTC(), e
		return nil
	}
	return hold
}

// End describes the end of a hold.
func (hold *Hold) End() string {
	e := hold.Ended
	if e == nil {
		return "no end is recorded"
	}
	how := map[string]string{"lock_released": "released", "lock_stolen": "taken over", "lock_removed": "removed by lockfs"}[e.GetEvent()]
	if by := e.GetBy(); by != nil {
		how = strings.TrimSuffix(how, " by lockfs") + fmt.Sprintf(" by uid %d on %s", by.GetUid(), by.GetHost())
		if by.GetPid() != 0 {
			how += fmt.Sprintf(" (pid %d)", by.GetPid())
		}
	}
	if e.GetReason() != "" {
		how += ": " + e.GetReason()
	}
	return fmt.Sprintf("%s (event %d)", how, e.GetNumber())
}

// Remark is a note on a possible but suspicious event.
type Remark struct {
	Event *storepb.Event
	Text  string
}

// Remarks returns remarks on removals by force, and on removals from another host than the holder's without
// an event of staleness. Rules and formats may allow those.
func (h *History) Remarks() (remarks []Remark) {
	stale := make(map[place]uint64)
	for _, e := range h.Events {
		switch {
		case e.GetEvent() == "lock_stale":
			stale[placeOf(e)] = e.GetToken()
		case e.GetEvent() == "lock_removed" && byForce(e):
			remarks = append(remarks, Remark{e, "it was removed by force"})
		case (e.GetEvent() == "lock_released" || e.GetEvent() == "lock_stolen") && stale[placeOf(e)] != tokenOf(e):
			if by, holder := e.GetBy(), hostOf(e); by != nil && holder != "" && by.GetHost() != holder {
				remarks = append(remarks, Remark{e, "it was not stale, and went from another host than its holder's"})
			}
		}
	}
	return remarks
}

func tokenOf(e *storepb.Event) uint64 {
	if e.GetPrevious() != nil {
		return e.GetPrevious().GetToken()
	}
	return e.GetToken()
}

func hostOf(e *storepb.Event) string {
	if e.GetPrevious() != nil {
		return e.GetPrevious().GetHost()
	}
	return e.GetHost()
}
