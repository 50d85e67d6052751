package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/lockjson"
)

// Timeline is a drawing of a lock's history. Each holder, waiter and refused process has a lane; time runs
// from left to right. Lengths are in the drawing's units.
type Timeline struct {
	Width, Height int
	Left          int // begin of the time axis
	Lanes         []Lane
	Bars          []Bar
	Marks         []Mark
	Ticks         []Tick
	Says          string // text alternative
}

// Lane is a horizontal lane of the drawing.
type Lane struct {
	Y     int
	Label string
}

// Bar is a period of holding or waiting.
type Bar struct {
	X, Y, Width int
	Kind        string // held, unreachable, stale, waits
	Says        string
}

// Mark is an event at a point in time.
type Mark struct {
	X, Y int
	Kind string // refused, stolen, removed
	Says string
}

// Tick is a label of the time axis.
type Tick struct {
	X     int
	Label string
}

const (
	timelineWidth = 960
	timelineLeft  = 190
	timelineRight = 44
	laneHeight    = 26
	mostLanes     = 10
	barHeight     = 14
	timelineTicks = 5
	shortestTime  = 10 * time.Second
	longestLabel  = 26
	timelineGrain = 2 * time.Second // rounds now, so the drawing changes less often
)

// hold is a period with one holder.
type hold struct {
	who      string
	token    uint64
	host     string // of its process, if it lives as long as one
	from, to moment
	stale    moment // begin of staleness; 0: never stale
	open     bool   // not ended yet
	how      string // kind of end
	reason   string
	absent   []absence // of its host, if the lock lives as long as a process there
}

// drawTimeline draws the events, the absences of the holders' hosts, and the current waiters; nil: nothing to
// draw.
func drawTimeline(d *LockDetail, absences []absence, now moment) *Timeline {
	now -= now % moment(timelineGrain)
	holds, marks := holdsOf(d.History, now)
	for i := range holds {
		holds[i].loseSight(absences)
	}
	if n := len(holds); n > 0 && holds[n-1].open && d.State == string(lockfact.Unreachable) {
		holds[n-1].absent = append(holds[n-1].absent, absence{from: d.Since, to: now})
	}
	if len(holds) == 0 && len(marks) == 0 && len(d.Queue) == 0 {
		return nil
	}
	t := &Timeline{Width: timelineWidth, Left: timelineLeft}
	first := now - moment(shortestTime)
	for _, h := range holds {
		first = min(first, h.from)
	}
	for _, m := range marks {
		first = min(first, m.at)
	}
	for _, a := range d.Queue {
		first = min(first, now-moment(time.Duration(a.Age*float64(time.Second))))
	}
	x := func(at moment) int {
		share := float64(min(max(at, first), now)-first) / float64(now-first)
		return timelineLeft + int(share*(timelineWidth-timelineLeft-timelineRight))
	}
	t.drawHolds(holds, x)
	for _, m := range marks {
		t.Marks = append(t.Marks, Mark{X: x(m.at), Y: t.lane(m.who) + laneHeight/2, Kind: m.kind, Says: m.says})
	}
	for _, a := range d.Queue {
		kind := "waits"
		switch a.State {
		case lockjson.AdvisoryHeld:
			kind = "held"
		case lockjson.AdvisoryDelayed: // its session has expired
			kind = "unreachable"
		}
		from := now - moment(time.Duration(a.Age*float64(time.Second)))
		who := fmt.Sprintf("pid %d on %s", a.PID, a.Host)
		t.Bars = append(t.Bars, t.bar(who, kind, x(from), x(now), fmt.Sprintf("%s: %s %s %s since %s", who, a.State, a.Type, a.Kind, from.Clock())))
	}
	t.Height = len(t.Lanes)*laneHeight + 30
	t.drawTicks(first, now, x)
	t.Says = fmt.Sprintf("%d holders and %d refusals since %s; now %s, with %d waiters", len(holds), len(marks), first.Text(), cmp.Or(d.State, "gone"), d.Waiters)
	return t
}

func (t *Timeline) drawHolds(holds []hold, x func(moment) int) {
	for _, h := range holds {
		end := "until " + h.to.Clock() + ", then " + h.how
		if h.open {
			end = "until now"
		}
		if h.reason != "" {
			end += " (" + h.reason + ")"
		}
		says := fmt.Sprintf("%s, token %d, from %s %s", h.who, h.token, h.from.Clock(), end)
		healthy := h.to
		if h.stale != 0 {
			healthy = h.stale
			t.Bars = append(t.Bars, t.bar(h.who, "stale", x(h.stale), x(h.to), says+"; stale since "+h.stale.Clock()))
		}
		t.drawHold(h, healthy, x, says)
		if h.how == "stolen" || h.how == "removed" {
			t.Marks = append(t.Marks, Mark{X: x(h.to), Y: t.lane(h.who) + laneHeight/2, Kind: h.how, Says: h.how + " at " + h.to.Clock() + " " + h.reason})
		}
	}
}

// drawHold draws a hold until it ends or becomes stale. Absences of the host interrupt the bar.
func (t *Timeline) drawHold(h hold, healthy moment, x func(moment) int, says string) {
	at := h.from
	for _, gone := range h.absent {
		from, to := max(gone.from, at), min(gone.to, healthy)
		if from >= to {
			continue
		}
		if from > at {
			t.Bars = append(t.Bars, t.bar(h.who, "held", x(at), x(from), says))
		}
		t.Bars = append(t.Bars, t.bar(h.who, "unreachable", x(from), x(to), says+"; its host was unreachable from "+from.Clock()+" to "+to.Clock()))
		at = to
	}
	if at < healthy || at == h.from {
		t.Bars = append(t.Bars, t.bar(h.who, "held", x(at), x(healthy), says))
	}
}

func (t *Timeline) bar(who, kind string, from, to int, says string) Bar {
	return Bar{X: from, Y: t.lane(who) + (laneHeight-barHeight)/2, Width: max(3, to-from), Kind: kind, Says: says}
}

// lane returns the position of a lane. All names beyond the limit share the last one.
func (t *Timeline) lane(who string) int {
	label := shorten(who, longestLabel)
	if i := slices.IndexFunc(t.Lanes, func(l Lane) bool { return l.Label == label }); i >= 0 {
		return t.Lanes[i].Y
	}
	if len(t.Lanes) == mostLanes {
		t.Lanes[mostLanes-1].Label = "others"
		return t.Lanes[mostLanes-1].Y
	}
	t.Lanes = append(t.Lanes, Lane{Y: len(t.Lanes) * laneHeight, Label: label})
	return t.Lanes[len(t.Lanes)-1].Y
}

func shorten(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}

func (t *Timeline) drawTicks(first, now moment, x func(moment) int) {
	days := now-first > moment(20*time.Hour)
	for i := range timelineTicks {
		at := first + (now-first)*moment(i)/(timelineTicks-1)
		label := at.Clock()
		if days {
			label = at.Day() + " " + label[:5]
		}
		t.Ticks = append(t.Ticks, Tick{X: x(at), Label: label})
	}
}

type happened struct {
	at              moment
	who, kind, says string
}

// holdsOf derives the periods of holders from events.
func holdsOf(events []lockjson.Event, now moment) (holds []hold, refusals []happened) {
	end := func(at moment, how, reason string) {
		if len(holds) > 0 && holds[len(holds)-1].open {
			last := &holds[len(holds)-1]
			last.to, last.open, last.how, last.reason = at, false, how, reason
		}
	}
	for _, e := range events {
		at := moment(e.Timestamp.UnixNano())
		switch e.Event {
		case "lock_acquired", "lock_stolen":
			how := "released"
			if e.Event == "lock_stolen" {
				how = "stolen"
			}
			end(at, how, e.Reason)
			holds = append(holds, hold{who: holderOf(e), token: e.Token, host: hostOf(e), from: at, to: now, open: true})
		case "lock_released":
			end(at, "released", e.Reason)
		case "lock_removed":
			end(at, "removed", e.Reason)
		case "lock_stale":
			if len(holds) > 0 && holds[len(holds)-1].open {
				holds[len(holds)-1].stale = at
			}
		case "removal_refused":
			refusals = append(refusals, happened{at, callerOf(e), "refused", "refused at " + at.Clock() + ": " + e.Reason})
		}
	}
	return holds, refusals
}

func holderOf(e lockjson.Event) string {
	who := Lock{Holder: e.Holder, PID: e.PID}.Who()
	switch {
	case who == "" && e.Host == "":
		return "unknown"
	case who == "":
		return "on " + e.Host
	case e.Host == "":
		return who
	}
	return who + " on " + e.Host
}

func callerOf(e lockjson.Event) string {
	if e.By == nil {
		return "lockfs"
	}
	return fmt.Sprintf("pid %d on %s", e.By.PID, e.By.Host)
}

// loseSight keeps the absences of the host of a hold.
func (h *hold) loseSight(all []absence) {
	for _, a := range all {
		if h.host != "" && a.host == h.host && a.from < h.to && a.to > h.from {
			h.absent = append(h.absent, a)
		}
	}
}

// hostOf returns the host of a lock which lives as long as a process there; empty: another lock.
func hostOf(e lockjson.Event) string {
	format, err := lockfact.ParseFormat(e.Format)
	if err != nil || !(lockfact.Facts{Format: format, PID: int(e.PID)}).ByProcess() {
		return ""
	}
	return e.Host
}
