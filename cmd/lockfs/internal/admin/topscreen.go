package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	tea "charm.land/bubbletea/v2"

	"lockfs/cmd/lockfs/internal/cli"
)

// top is the model of `lockfs top`.
type top struct {
	look          func() desk
	seen          desk
	width, height int
	view          int // index into views
	at            int // index of the first visible row
	words         string
	typing        bool // the filter is being typed
}

func (m *top) View() tea.View {
	view := tea.NewView(m.text())
	view.AltScreen = true
	return view
}

func (m *top) text() string {
	rows := m.chosen()
	lines := append(m.banner(), m.title(len(rows)))
	shown := rows[min(m.at, len(rows)):min(m.at+m.room(), len(rows))]
	lines = append(lines, table(views[m.view].columns, shown, max(20, m.width-60))...)
	for i, line := range lines {
		lines[i] = fit(line, max(m.width, 40))
	}
	return strings.Join(append(lines, "q quit  tab views  / narrow  j k scroll"), "\n")
}

// chosen returns the rows matching the filter.
func (m *top) chosen() [][]string {
	words := strings.Fields(strings.ToLower(m.words))
	return slices.DeleteFunc(views[m.view].rows(&m.seen), func(row []string) bool {
		text := strings.ToLower(strings.Join(row, "\n"))
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// room returns the number of visible rows.
func (m *top) room() int { return max(1, m.height-len(m.banner())-3) }

// banner returns the lines above all views.
func (m *top) banner() []string {
	b := m.seen.banner
	var lines []string
	switch {
	case m.seen.at.IsZero():
		return []string{"looking"}
	case m.seen.err != nil:
		lines = append(lines, cli.Text(m.seen.err.Error()))
	}
	majority, clocks := "no quorum", "clocks not known"
	if b.Health.HasQuorum() {
		majority = "quorum"
	}
	if b.Clocks > 0 {
		clocks = "clocks " + b.SpreadText() + " apart"
	}
	lines = append(lines, fmt.Sprintf("leader %s, term %d  %s: %d of %d answer  %s",
		cmp.Or(cli.Text(b.Leader), "(unknown)"), b.Term, majority, b.Health.Answering, b.Health.Voters, clocks))
	silent := "unreachable hosts: none"
	if len(b.Silent) > 0 {
		silent = "UNREACHABLE HOSTS: " + cli.Text(strings.Join(b.Silent, ", "))
	}
	alarms := "alarms: none"
	if len(b.Alarms) > 0 {
		alarms = "ALARMS: " + cli.Text(strings.Join(b.Alarms, "; "))
	}
	lines = append(lines, silent, alarms)
	if b.Warning != "" {
		lines = append(lines, b.Warning)
	}
	return lines
}

// title returns the names of the views, and the filter.
func (m *top) title(rows int) string {
	var names []string
	for i, view := range views {
		name := fmt.Sprintf(" %d %s ", i+1, view.name)
		if i == m.view {
			name = fmt.Sprintf("[%d %s]", i+1, view.name)
		}
		names = append(names, name)
	}
	title := fmt.Sprintf("%s  %s  %d", strings.Join(names, ""), m.seen.at.Format(time.TimeOnly), rows)
	switch {
	case m.typing:
		return title + "  /" + cli.Text(m.words) + "_"
	case m.words != "":
		return title + "  with " + cli.Text(m.words)
	}
	return title
}

// table formats rows below their column names. Cells are at most widest characters wide, except in the last
// column.
func table(columns string, rows [][]string, widest int) []string {
	var text strings.Builder
	lines := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(lines, strings.ReplaceAll(columns, " ", "\t"))
	for _, row := range rows {
		for i, cell := range row {
			if i < len(row)-1 {
				cell = fit(cell, widest) + "\t"
			}
			fmt.Fprint(lines, cell)
		}
		fmt.Fprintln(lines)
	}
	_ = lines.Flush()
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// fit cuts a text to a width.
func fit(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return strings.TrimRight(text, " ")
}
