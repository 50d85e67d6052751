package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTableWithoutATerminalIsComplete(t *testing.T) {
	var out strings.Builder
	table := NewTable(&out)
	table.Row("NAME", "STATE", "TEXT")
	table.Row("a", "stale", strings.Repeat("long ", 60))
	require.NoError(t, table.Flush())
	require.Equal(t, "NAME  STATE  TEXT\na     stale  "+strings.Repeat("long ", 60)+"\n", out.String())
}

func TestTableFitsTheTerminalAndColoursTrouble(t *testing.T) {
	var out strings.Builder
	table := &Table{to: &out, width: 40}
	table.Row("PATH", "STATE", "HOLDER")
	table.Row(strings.Repeat("directory/", 8)+"x.lock", "stale", "pid 4711 on stale-host")
	table.Row("b.lock", "held", "me")
	require.NoError(t, table.Flush())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 40, line)
	}
	require.Contains(t, out.String(), "…")
	require.NotContains(t, out.String(), "\x1b")

	out.Reset()
	table = &Table{to: &out, width: 40}
	table.Row("NUMBER", "TEXT")
	table.Row(7, "the state of member a differs from the others: check it")
	require.NoError(t, table.Flush())
	require.Equal(t, "NUMBER  TEXT\n7       the state of member a differs\n        from the others: check it\n", out.String())

	require.Equal(t, "a  \x1b[33mstale\x1b[0m  on stale\nstale-b  held  x\nc  \x1b[31mdead\x1b[0m\n", colourTrouble("a  stale  on stale\nstale-b  held  x\nc  dead\n"))
}
