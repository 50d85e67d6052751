package audit

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"os"
	"time"

	"lockfs/cluster/atomicfile"
	"lockfs/cluster/auditverify"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"clock": clock, "where": where}).Parse(pageSource))

// page is the data of the page for an answer.
type page struct {
	*auditverify.Answer
	Statement string
	Grounds   []string
	Timeline  *timeline // of the requested lock, or nil
	Pieces    []piece
}

// piece is a contradiction and its timeline.
type piece struct {
	*auditverify.Contradiction
	Timeline *timeline
}

// timeline is a set of bars in lanes, between two times.
type timeline struct {
	Begin, End time.Time
	Lanes      []lane
}

type lane struct {
	Label string
	Text  string
	Left  float64 // percent of the width
	Width float64
	Open  bool // the end is unknown
}

// writePage writes a private page: it names locks and holders.
func writePage(path string, a *auditverify.Answer) error {
	return atomicfile.ReplaceWith(path, func(file *os.File) error { return pageTemplate.Execute(file, newPage(a)) })
}

func newPage(a *auditverify.Answer) *page {
	p := &page{Answer: a, Statement: statement(a), Grounds: grounds(a)}
	if len(a.Holds) > 0 {
		p.Timeline = holdLanes(a)
	}
	for _, c := range a.Contradictions {
		p.Pieces = append(p.Pieces, piece{c, pieceLanes(c)})
	}
	return p
}

// bar is an interval.
type bar struct {
	label, text string
	from, until time.Time // zero: outside of the timeline
}

func holdLanes(a *auditverify.Answer) *timeline {
	var bars []bar
	for _, h := range a.Holds {
		bars = append(bars, bar{label: fmt.Sprintf("token %d, %s", h.Token, h.Holder), text: h.End, from: h.From, until: h.Until})
	}
	return draw(bars, a.Since, a.Until)
}

// pieceLanes returns a lane for each step, up to the next step that ends it.
func pieceLanes(c *auditverify.Contradiction) *timeline {
	var bars []bar
	for i, step := range c.Piece {
		b := bar{label: fmt.Sprint(i + 1), text: step.Text, from: step.At, until: step.At}
		if step.Event.Event == "lock_acquired" {
			b.until = time.Time{}
			for _, later := range c.Piece[i+1:] {
				if e := later.Event; (e.Event == "lock_released" || e.Event == "lock_removed") && e.Token == step.Event.Token {
					b.until = later.At
				}
			}
		}
		bars = append(bars, b)
	}
	return draw(bars, time.Time{}, time.Time{})
}

// draw places bars on a timeline, with the given ends or the ones of the bars.
func draw(bars []bar, begin, end time.Time) *timeline {
	first, last := begin, end
	for _, b := range bars {
		for _, t := range []time.Time{b.from, b.until} {
			if t.IsZero() {
				continue
			}
			if begin.IsZero() && (first.IsZero() || t.Before(first)) {
				first = t
			}
			if end.IsZero() && (last.IsZero() || t.After(last)) {
				last = t
			}
		}
	}
	margin := max(last.Sub(first)/20, time.Millisecond)
	if begin.IsZero() {
		first = first.Add(-margin)
	}
	if end.IsZero() {
		last = last.Add(margin)
	}
	t := &timeline{Begin: first, End: last}
	width := float64(last.Sub(first))
	at := func(when, beyond time.Time) float64 {
		if when.IsZero() {
			when = beyond
		}
		return min(100, max(0, 100*float64(when.Sub(first))/width))
	}
	for _, b := range bars {
		left, right := at(b.from, first), at(b.until, last)
		t.Lanes = append(t.Lanes, lane{
			Label: b.label, Text: b.text, Left: min(left, 99.5), Width: max(right-left, 0.5), Open: b.until.IsZero(),
		})
	}
	return t
}
