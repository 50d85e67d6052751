package audit

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"lockfs/cluster/auditverify"
	"lockfs/cmd/lockfs/internal/cli"
)

// printAnswer prints an answer as text.
func printAnswer(to io.Writer, a *auditverify.Answer) error {
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, statement(a))
	fmt.Fprintln(out)
	for _, c := range a.Contradictions {
		fmt.Fprintf(out, "%s: %s\n", cli.Word(c.Path), cli.Text(c.Why))
		for _, step := range c.Piece {
			fmt.Fprintf(out, "  %s  %s\n", clock(step.At), printable(step.Text))
		}
		fmt.Fprintln(out)
	}
	for _, p := range a.Problems {
		fmt.Fprintf(out, "%s: %s: %s\n", where(p), p.Kind, printable(p.Text))
	}
	if len(a.Problems) > 0 {
		fmt.Fprintln(out)
	}
	if len(a.Holds) > 0 {
		fmt.Fprintf(out, "holders of %s in order:\n", cli.Word(a.Path))
		for _, h := range a.Holds {
			fmt.Fprintf(out, "  %s to %s  token %d, %s; %s\n", from(h), until(h), h.Token, printable(h.Holder), printable(h.End))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, "evidence, and its limits:")
	for _, line := range grounds(a) {
		fmt.Fprintf(out, "  - %s\n", printable(line))
	}
	for _, r := range a.Remarks {
		fmt.Fprintf(out, "  - worth a look: event %d at %s, %s: %s\n", r.Number, clock(r.At), cli.Word(r.Path), r.Text)
	}
	return out.Flush()
}

// statement returns the answer as a sentence.
func statement(a *auditverify.Answer) string {
	what := "any lock"
	if a.Path != "" {
		what = cli.Word(a.Path)
	}
	when := span(a)
	switch {
	case len(a.Contradictions) > 0:
		return fmt.Sprintf("%d CONTRADICTIONS: the records of %s are impossible", len(a.Contradictions), what)
	case len(a.Problems) > 0:
		return fmt.Sprintf("not proven: the logs have been changed; they show no two holders of %s %s", what, when)
	case len(a.Uncovered) > 0:
		return fmt.Sprintf("not proven: %s", strings.Join(a.Uncovered, "; "))
	}
	return fmt.Sprintf("no two holders of %s %s", what, when)
}

func span(a *auditverify.Answer) string {
	begin, end := a.Begin, a.End
	if !a.Since.IsZero() {
		begin = a.Since
	}
	if !a.Until.IsZero() {
		end = a.Until
	}
	return fmt.Sprintf("between %s and %s", clock(begin), clock(end))
}

// grounds returns the evidence for an answer.
func grounds(a *auditverify.Answer) (lines []string) {
	for _, l := range a.Logs {
		line := fmt.Sprintf("%s: %d events", l.Name, l.Events)
		if l.Events > 0 {
			line += fmt.Sprintf(", %d to %d, of which the last has the hash %s", l.First, l.Last, l.Hash)
		}
		if l.Cluster != "" {
			line += ", of cluster " + l.Cluster
		}
		lines = append(lines, line)
	}
	if len(a.Logs) > 1 {
		lines = append(lines, fmt.Sprintf("%d of %d events are in more than one log, with the same hash", a.Compared, a.Events))
	}
	if len(a.Problems) == 0 && a.Events > 0 {
		lines = append(lines, fmt.Sprintf("each event from %d to %d is unchanged and follows its predecessor, by its hash", a.First, a.Last))
	}
	if len(a.Contradictions) == 0 {
		lines = append(lines, fmt.Sprintf("events of %d locks, in the order of the log: each was acquired while free, tokens rise, "+
			"lockfs removed only stale or forced locks, and each expiry has its evidence", a.Locks))
	}
	return append(append(lines, a.Uncovered...), a.Notes...)
}

func where(p *auditverify.Problem) string {
	if p.File == "" {
		return p.Log
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

func from(h *auditverify.Hold) string {
	if h.From.IsZero() {
		return "before the logs begin "
	}
	return clock(h.From)
}

func until(h *auditverify.Hold) string {
	if h.Until.IsZero() {
		return "the end of the logs   "
	}
	return clock(h.Until)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// printable escapes control characters, and keeps quotes and spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if cli.Text(string(r)) != string(r) {
			return '\ufffd'
		}
		return r
	}, text)
}
