package auditverify

import (
	"fmt"
	"io"
	"strings"
	"time"

	"lockfs/raftstore/lockhistory"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// Question specifies a verification.
type Question struct {
	Files        []string  // logs; "-" means standard input, a directory means its audit.jsonl
	Stdin        io.Reader // for "-"
	Path         string    // of one lock; empty: all
	Since, Until time.Time // cluster time; zero: unlimited
}

// Answer is the result of a verification.
type Answer struct {
	Logs           []*LogAnswer     `json:"logs"`
	Events         int              `json:"events"`
	Compared       uint64           `json:"compared"` // events in more than one log
	Locks          int              `json:"locks"`    // paths in events
	First          uint64           `json:"first,omitempty"`
	Last           uint64           `json:"last,omitempty"`
	Begin          time.Time        `json:"begin,omitzero"` // time of the first event, or of the chain's begin
	End            time.Time        `json:"end,omitzero"`
	Whole          bool             `json:"whole"` // the events are complete from the first to the last
	Path           string           `json:"lock_path,omitempty"`
	Since          time.Time        `json:"since,omitzero"`
	Until          time.Time        `json:"until,omitzero"`
	Problems       []*Problem       `json:"problems,omitempty"`
	Contradictions []*Contradiction `json:"contradictions,omitempty"`
	Uncovered      []string         `json:"uncovered,omitempty"` // requested, but not in any log
	Notes          []string         `json:"notes,omitempty"`
	Remarks        []*Remark        `json:"remarks,omitempty"`
	Holds          []*Hold          `json:"holds,omitempty"` // of the requested lock
}

// LogAnswer describes a log.
type LogAnswer struct {
	Name    string   `json:"name"`
	Files   []string `json:"files"`
	Events  int      `json:"events"`
	First   uint64   `json:"first,omitempty"`
	Last    uint64   `json:"last,omitempty"`
	Hash    string   `json:"hash,omitempty"` // of the last event
	Cluster string   `json:"cluster,omitempty"`
}

// Contradiction is an impossible sequence of events.
type Contradiction struct {
	Path  string  `json:"lock_path"`
	Why   string  `json:"why"`
	Piece []*Step `json:"piece"`
}

// Step is an event of a contradiction.
type Step struct {
	At    time.Time       `json:"at"`
	Text  string          `json:"text"`
	Event *lockjson.Event `json:"event,omitempty"`
}

// Hold is a period with one holder of a lock.
type Hold struct {
	Path   string    `json:"lock_path"`
	Token  uint64    `json:"token"`
	Holder string    `json:"holder"`
	From   time.Time `json:"from,omitzero"`  // missing: before the first event
	Until  time.Time `json:"until,omitzero"` // missing: after the last event
	End    string    `json:"end"`
}

// Remark is a possible but unusual event.
type Remark struct {
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Path   string    `json:"lock_path"`
	Text   string    `json:"text"`
}

// Sound reports whether there are no problems and no contradictions.
func (a *Answer) Sound() bool { return len(a.Problems) == 0 && len(a.Contradictions) == 0 }

// Proven reports whether the answer is sound and the logs cover the whole question.
func (a *Answer) Proven() bool { return a.Sound() && len(a.Uncovered) == 0 }

// Ask reads the logs and checks them. It returns an error if a log cannot be read.
func (q *Question) Ask() (*Answer, error) {
	sources, err := sourcesOf(q.Files)
	if err != nil {
		return nil, err
	}
	q.Path = strings.Trim(q.Path, "/")
	a := &Answer{Path: q.Path, Since: q.Since, Until: q.Until}
	h := new(lockhistory.History)
	var logs []*log
	for _, s := range sources {
		l, err := s.read(q.Stdin)
		if err != nil {
			return nil, err
		}
		logs = append(logs, l)
		a.Logs = append(a.Logs, l.answer(s.files))
		a.Problems = append(a.Problems, l.problems...)
	}
	all := compare(logs)
	a.Problems = append(a.Problems, all.problems...)
	h.Events = all.events
	h.Whole = len(h.Events) > 0 && h.Events[0].GetNumber() == 1 && len(all.gaps) == 0
	a.Events, a.Compared, a.Whole, a.Locks = len(h.Events), all.common, h.Whole, len(h.Paths())
	a.cover(q, logs, all)
	for _, c := range h.Check() {
		if q.asksAbout(c) {
			a.Contradictions = append(a.Contradictions, contradiction(c))
		}
	}
	for _, r := range h.Remarks() {
		if at := timeOf(r.Event); q.asksAboutEvent(r.Event) {
			a.Remarks = append(a.Remarks, &Remark{r.Event.GetNumber(), at, string(r.Event.GetPath()), r.Text})
		}
	}
	if q.Path != "" {
		for _, hold := range h.Holds(q.Path, q.Since, q.Until) {
			a.Holds = append(a.Holds, &Hold{hold.Path, hold.Token, hold.Holder, hold.From, hold.Until, hold.End()})
		}
	}
	return a, nil
}

func (l *log) answer(files []string) *LogAnswer {
	answer := &LogAnswer{Name: l.name, Files: files, Events: len(l.lines), Cluster: l.cluster()}
	if len(l.lines) > 0 {
		last := l.lines[len(l.lines)-1].event
		answer.First, answer.Last, answer.Hash = l.lines[0].event.GetNumber(), last.GetNumber(), fmt.Sprintf("%x", last.GetHash())
	}
	return answer
}

// cover adds the range of the logs to the answer, and the parts of the question outside it.
func (a *Answer) cover(q *Question, logs []*log, all *union) {
	for _, l := range logs {
		a.noteEnds(l, all.events)
	}
	if len(all.events) == 0 {
		a.Uncovered = append(a.Uncovered, "the given logs have no event")
		return
	}
	first, last := all.events[0], all.events[len(all.events)-1]
	a.First, a.Last, a.Begin, a.End = first.GetNumber(), last.GetNumber(), timeOf(first), timeOf(last)
	switch {
	case begins(first):
	case !q.Since.IsZero() && q.Since.Before(a.Begin):
		a.Uncovered = append(a.Uncovered, fmt.Sprintf("the logs begin with event %d at %s: earlier events are missing", a.First, clock(a.Begin)))
	default:
		a.Notes = append(a.Notes, fmt.Sprintf("the logs begin with event %d at %s: older files were removed", a.First, clock(a.Begin)))
	}
	for i, e := range all.events[1:] {
		if begins(e) {
			a.Notes = append(a.Notes, fmt.Sprintf("event %d begins another chain: %s", e.GetNumber(), e.GetReason()))
			continue
		}
		before := all.events[i]
		if e.GetNumber() > before.GetNumber()+1 && (q.Since.IsZero() || !timeOf(e).Before(q.Since)) && (q.Until.IsZero() || !timeOf(before).After(q.Until)) {
			a.Uncovered = append(a.Uncovered, fmt.Sprintf("%s in none of the logs, from between %s and %s",
				numbers(before.GetNumber()+1, e.GetNumber()-1), clock(timeOf(before)), clock(timeOf(e))))
		}
	}
	if !q.Until.IsZero() && q.Until.After(a.End) {
		a.Notes = append(a.Notes, fmt.Sprintf("no log has an event after %s: nothing has happened since, or it is not written or was cut off in all of them", clock(a.End)))
	}
}

// noteEnds adds notes about ends which may have been cut off.
func (a *Answer) noteEnds(l *log, events []*storepb.Event) {
	if l.torn {
		a.Notes = append(a.Notes, l.name+" ends with a part of a line: it is being written, or was cut off there")
	}
	if len(l.lines) == 0 || len(events) == 0 {
		return
	}
	if first := l.lines[0].event.GetNumber(); first > events[0].GetNumber() {
		a.Notes = append(a.Notes, fmt.Sprintf("%s begins with event %d, and another log has them from %d on: this server came later, or older files were removed",
			l.name, first, events[0].GetNumber()))
	}
	last, newest := l.lines[len(l.lines)-1].event.GetNumber(), events[len(events)-1].GetNumber()
	if last < newest {
		a.Notes = append(a.Notes, fmt.Sprintf("%s ends with event %d, and another log continues to %d: its end was cut off, or not written yet when it was copied",
			l.name, last, newest))
	}
}

// asksAbout reports whether a contradiction concerns the question. One which began earlier may continue.
func (q *Question) asksAbout(c *lockhistory.Contradiction) bool {
	if q.Path != "" && q.Path != c.Path {
		return false
	}
	return q.Until.IsZero() || !lockhistory.Time(c.Piece[0]).After(q.Until)
}

func (q *Question) asksAboutEvent(e *storepb.Event) bool {
	return (q.Path == "" || q.Path == string(e.GetPath())) && q.during(timeOf(e))
}

func (q *Question) during(t time.Time) bool {
	return (q.Since.IsZero() || !t.Before(q.Since)) && (q.Until.IsZero() || !t.After(q.Until))
}

func contradiction(c *lockhistory.Contradiction) *Contradiction {
	told := &Contradiction{Path: c.Path, Why: c.Why}
	for _, e := range c.Piece {
		described := lockjson.DescribeEvent(e)
		told.Piece = append(told.Piece, &Step{At: lockhistory.Time(e), Text: lockhistory.Describe(e), Event: &described})
	}
	return told
}

func timeOf(e *storepb.Event) time.Time { return time.Unix(0, e.GetTime()).UTC() }
func clock(t time.Time) string          { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
