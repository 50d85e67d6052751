package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"lockfs/raftstore/storepb"
)

// union is what several logs have together.
type union struct {
	events   []*storepb.Event // by number
	problems []*Problem
	gaps     []gap
	common   uint64 // events that more than one log has
}

// gap is events that are in no log.
type gap struct{ first, last uint64 }

// compare finds what differs between logs. The one that counts for an event is the one that most have, and of as many that of the sounder log.
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
				one.event = other.event // memory
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

// votes is how many logs have an event as it is in a line.
func votes(logs []*log, one *line) (count int) {
	for _, l := range logs {
		if other, has := l.byNumber[one.event.GetNumber()]; has && other.sound && same(one, other) {
			count++
		}
	}
	return count
}

// stranger says of which cluster a log is, if it is a whole one of its own that has nothing in common with the others.
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

// differences tells once of events in a row that are others in a log.
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

// collect puts together what counts, and finds what is in no log.
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
