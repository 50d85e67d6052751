package auditverify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"lockfs/raftstore/storepb"
)

// union is the combination of several logs.
type union struct {
	events   []*storepb.Event // in order of their numbers
	problems []*Problem
	gaps     []gap
	common   uint64 // events in more than one log
}

// gap is a range of events missing in all logs.
type gap struct{ first, last uint64 }

// compare merges logs and returns their differences. For each event, the version in most logs wins; with
// equal counts, the log with fewer problems wins.
func compare(logs []*log) *union {
	sorted := slices.Clone(logs)
	slices.SortStableFunc(sorted, func(a, b *log) int {
		return cmp.Or(cmp.Compare(len(a.problems), len(b.problems)), cmp.Compare(len(b.lines), len(a.lines)))
	})
	u := new(union)
	strangers := make(map[*log]bool)
	for _, l := range sorted {
		if of := stranger(l, sorted, strangers); of != "" {
			strangers[l] = true
			u.problems = append(u.problems, &Problem{Kind: Stranger, Log: l.name, Text: of})
		}
	}
	chosen := make(map[uint64]*line)
	for _, l := range sorted {
		if strangers[l] {
			continue
		}
		for _, one := range l.lines {
			number := one.event.GetNumber()
			other, has := chosen[number]
			switch {
			case !has:
				chosen[number] = one
			case other.sound && one.sound && same(other, one):
				one.event = other.event // to save memory
			case !other.sound && one.sound || votes(logs, one) > votes(logs, other) && one.sound:
				chosen[number] = one
			}
		}
	}
	for _, l := range logs {
		if !strangers[l] {
			u.problems = append(u.problems, differences(l, chosen)...)
		}
	}
	u.collect(chosen, logs)
	return u
}

func same(a, b *line) bool { return bytes.Equal(a.event.GetHash(), b.event.GetHash()) }

func votes(logs []*log, one *line) (count int) {
	for _, l := range logs {
		if other, has := l.byNumber[one.event.GetNumber()]; has && other.sound && same(one, other) {
			count++
		}
	}
	return count
}

// stranger returns why a log belongs to another cluster, or an empty string. Such a log names another
// cluster, or is without problems and differs from the others in every event.
func stranger(l *log, logs []*log, known map[*log]bool) string {
	common, agreed := 0, 0
	for _, other := range logs {
		if other == l || known[other] {
			continue
		}
		for number, one := range l.byNumber {
			if theirs, has := other.byNumber[number]; has {
				common++
				if same(one, theirs) {
					agreed++
				}
			}
		}
		if mine, others := l.cluster(), other.cluster(); mine != "" && others != "" && mine != others && agreed == 0 {
			return fmt.Sprintf("it is of another cluster: of %s, and %s is of %s", mine, other.name, others)
		}
	}
	if common > 0 && agreed == 0 && len(l.problems) == 0 {
		return "it is of another cluster: it has no event in common with the others"
	}
	return ""
}

func differences(l *log, chosen map[uint64]*line) (problems []*Problem) {
	var last *Problem
	end := uint64(0)
	for _, one := range l.lines {
		number := one.event.GetNumber()
		if same(one, chosen[number]) {
			continue
		}
		if last != nil && end+1 == number {
			end = number
			last.Text = fmt.Sprintf("events %d to %d are others than in the other logs", last.Number, end)
			continue
		}
		end = number
		last = &Problem{Kind: Differs, Log: l.name, File: one.file, Line: one.at, Number: number,
			Text: fmt.Sprintf("event %d is another one than in the other logs", number)}
		problems = append(problems, last)
	}
	return problems
}

// collect combines the chosen events, and finds the gaps.
func (u *union) collect(chosen map[uint64]*line, logs []*log) {
	for _, one := range chosen {
		u.events = append(u.events, one.event)
		if votes(logs, one) > 1 {
			u.common++
		}
	}
	slices.SortFunc(u.events, func(a, b *storepb.Event) int { return cmp.Compare(a.GetNumber(), b.GetNumber()) })
	for i, e := range u.events {
		if i > 0 && e.GetNumber() > u.events[i-1].GetNumber()+1 && !begins(e) {
			u.gaps = append(u.gaps, gap{u.events[i-1].GetNumber() + 1, e.GetNumber() - 1})
		}
	}
}
