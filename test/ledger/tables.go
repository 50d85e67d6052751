package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Goals for all runs together.
const (
	GoalHistories = 50_000
	GoalSoak      = 24 // hours
	GoalCuts      = 1_000
	GoalInputs    = 100_000_000
)

// sum of runs of a kind, or of all.
type sum struct {
	Entry
	runs    int
	commits map[string]bool
	last    string // day
}

func sumOf(all []Entry, kinds ...Kind) *sum {
	s := &sum{commits: make(map[string]bool)}
	s.Counts, s.Faults, s.Left = make(map[string]int64), make(map[string]int64), make(map[string]int64)
	s.Coverage = make(map[string]map[string]int64)
	for _, e := range all {
		if !slices.Contains(kinds, e.Kind) {
			continue
		}
		s.runs++
		s.commits[e.Commit] = true
		if s.Began.IsZero() || e.Began.Before(s.Began) {
			s.Began = e.Began
		}
		s.last = max(s.last, day(e))
		s.Seconds += e.Seconds
		s.Histories += e.Histories
		s.Undecided += e.Undecided
		s.Operations += e.Operations
		add(s.Counts, e.Counts)
		add(s.Faults, e.Faults)
		add(s.Left, e.Left)
		for fault, moments := range e.Coverage {
			if s.Coverage[fault] == nil {
				s.Coverage[fault] = make(map[string]int64)
			}
			add(s.Coverage[fault], moments)
		}
		s.Findings = append(s.Findings, e.Findings...)
	}
	return s
}

func day(e Entry) string { return e.Began.Format("2006-01-02") }

func add(to, more map[string]int64) {
	for name, n := range more {
		to[name] += n
	}
}

func total(of map[string]int64) (n int64) {
	for _, each := range of {
		n += each
	}
	return n
}

// grouped is a number with commas.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Tables returns the sums in Markdown. faults and moments are complete lists: the tables show also those that
// never came.
func Tables(all []Entry, cutKinds, faults, moments []string) string {
	var b strings.Builder
	goals(&b, all, cutKinds)
	runs(&b, all)
	coverage(&b, sumOf(all, Soak), faults, moments)
	counted(&b, "simulated world: what was done to it", "times", sumOf(all, Worlds).Faults)
	counted(&b, "power cut in", "times", sumOf(all, Cuts).Counts)
	counted(&b, "fuzzed", "inputs", sumOf(all, Fuzz).Counts)
	findings(&b, all)
	return strings.TrimSuffix(b.String(), "\n")
}

func goals(b *strings.Builder, all []Entry, cutKinds []string) {
	histories, cuts := sumOf(all, Soak, Worlds), sumOf(all, Cuts).Counts
	least, rarest := int64(-1), ""
	for _, kind := range cutKinds {
		if n := cuts[kind]; least < 0 || n < least {
			least, rarest = n, kind
		}
	}
	b.WriteString("| to reach | so far | of |\n|---|---|---|\n")
	fmt.Fprintf(b, "| histories under faults, checked | %s | %s |\n", grouped(histories.Histories-histories.Undecided), grouped(GoalHistories))
	fmt.Fprintf(b, "| hours of soak | %.1f | %d |\n", sumOf(all, Soak).Seconds/3600, GoalSoak)
	fmt.Fprintf(b, "| power cuts in each kind of write; the fewest: %s | %s | %s |\n", rarest, grouped(max(least, 0)), grouped(GoalCuts))
	fmt.Fprintf(b, "| fuzzed inputs | %s | %s |\n\n", grouped(sumOf(all, Fuzz).Operations), grouped(GoalInputs))
}

func runs(b *strings.Builder, all []Entry) {
	b.WriteString("| | runs | from | to | commits | hours | histories | undecided | operations | faults | findings |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, kind := range []Kind{Soak, Worlds, Cuts, Fuzz, Long} {
		s := sumOf(all, kind)
		if s.runs == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %d | %s | %s | %d | %.1f | %s | %s | %s | %s | %d |\n", kind, s.runs, day(s.Entry), s.last, len(s.commits), s.Seconds/3600,
			grouped(s.Histories), grouped(s.Undecided), grouped(s.Operations), grouped(total(s.Faults)), len(s.Findings))
	}
	b.WriteByte('\n')
}

// coverage writes how often each fault began at each moment, and during how many faults, itself included.
func coverage(b *strings.Builder, s *sum, faults, moments []string) {
	if s.runs == 0 {
		return
	}
	never := 0
	var rows strings.Builder
	for _, fault := range faults {
		fmt.Fprintf(&rows, "| %s | %d | %d |", fault, s.Faults[fault], s.Left[fault])
		for _, moment := range moments {
			n := s.Coverage[fault][moment]
			if n == 0 {
				never++
				rows.WriteString(" **never** |")
			} else {
				fmt.Fprintf(&rows, " %d |", n)
			}
		}
		fmt.Fprintf(&rows, " %d |\n", len(faults)-len(missing(s, fault, faults)))
	}
	fmt.Fprintf(b, "Soak: how often each fault began at which moment, and during how many of the %d faults. Of %d pairs of a fault and a moment\n"+
		"%d never came.\n\n", len(faults), len(faults)*len(moments), never)
	fmt.Fprintf(b, "| fault | begun | left out | %s | during others |\n|---|%s\n%s\n", strings.Join(moments, " | "), strings.Repeat("---|", len(moments)+3), rows.String())
}

// missing returns the faults and moments that never came with a fault.
func missing(s *sum, fault string, others []string) (never []string) {
	for _, other := range others {
		if s.Coverage[fault][other] == 0 {
			never = append(never, other)
		}
	}
	return never
}

// Never returns the pairs that never came in a soak, a line for each fault.
func Never(all []Entry, faults, moments []string) string {
	var b strings.Builder
	s := sumOf(all, Soak)
	for _, fault := range faults {
		if never := missing(s, fault, slices.Concat(moments, faults)); len(never) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", fault, strings.Join(never, ", "))
		}
	}
	return b.String()
}

func counted(b *strings.Builder, what, unit string, n map[string]int64) {
	if len(n) == 0 {
		return
	}
	fmt.Fprintf(b, "| %s | %s |\n|---|---|\n", what, unit)
	for _, name := range slices.Sorted(maps.Keys(n)) {
		fmt.Fprintf(b, "| %s | %s |\n", name, grouped(n[name]))
	}
	b.WriteByte('\n')
}

func findings(b *strings.Builder, all []Entry) {
	for _, e := range all {
		for _, finding := range e.Findings {
			fmt.Fprintf(b, "- found on %s by %s at %s: %s\n", day(e), e.Kind, e.Commit, finding)
		}
	}
}
