package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Table formats rows of cells, divided by tabs. On a terminal it fits the width: it wraps the text of the
// last column, and ends shortened cells with "…". There it also colours states of trouble, unless NO_COLOR is
// set. Elsewhere, all cells are complete and without colour.
type Table struct {
	to       io.Writer
	text     bytes.Buffer
	width    int // 0: no limit
	coloured bool
}

// NewTable returns a table for an output. The caller calls Flush at the end.
func NewTable(to io.Writer) *Table {
	t := &Table{to: to}
	if file, ok := to.(*os.File); ok && IsTerminal(to) {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
			t.width = int(size.Col)
		}
		t.coloured = os.Getenv("NO_COLOR") == ""
	}
	return t
}

// Write adds a part of a row, or several rows.
func (t *Table) Write(p []byte) (int, error) { return t.text.Write(p) }

// Row adds a row of cells.
func (t *Table) Row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			t.text.WriteByte('\t')
		}
		fmt.Fprint(&t.text, cell)
	}
	t.text.WriteByte('\n')
}

// narrowestCell and narrowestText are the least widths of a shortened cell and of wrapped text.
const (
	narrowestCell = 8
	narrowestText = 24
)

// gap is the number of spaces between columns.
const gap = 2

// Flush prints the table.
func (t *Table) Flush() error {
	var rows [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(t.text.String(), "\n"), "\n") {
		rows = append(rows, strings.Split(line, "\t"))
	}
	if t.width > 0 {
		rows = shorten(rows, t.width)
	}
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	err := table.Flush()
	if t.coloured {
		_, err = io.WriteString(t.to, colourTrouble(out.String()))
		return err
	}
	return cmp.Or(err, writeTo(t.to, out.Bytes()))
}

func writeTo(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

// shorten makes the rows fit: it wraps the last column, and shortens the widest of the others.
func shorten(rows [][]string, width int) (fitting [][]string) {
	var columns []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			columns[i] = max(columns[i], utf8.RuneCountInString(cell))
		}
	}
	last := len(columns) - 1
	over := gap*last - width
	for _, column := range columns {
		over += column
	}
	for over > 0 {
		widest := last
		if columns[last] <= narrowestText {
			for i, column := range columns {
				if column > columns[widest] {
					widest = i
				}
			}
		}
		if columns[widest] <= narrowestCell {
			break
		}
		columns[widest]--
		over--
	}
	for _, row := range rows {
		var more []string
		for i, cell := range row {
			if i == last && strings.Contains(cell, " ") {
				lines := strings.Split(wrapLine(cell, "", columns[last]), "\n")
				cell, more = lines[0], lines[1:]
			}
			if runes := []rune(cell); len(runes) > columns[i] {
				cell = string(runes[:columns[i]-1]) + "…"
			}
			row[i] = cell
		}
		fitting = append(fitting, row)
		for _, line := range more {
			continuation := make([]string, len(columns))
			continuation[last] = line
			fitting = append(fitting, continuation)
		}
	}
	return fitting
}

// trouble are the states to colour: the first words need action, the others attention.
var trouble = []struct {
	colour string
	words  []string
}{
	{"\x1b[31m", []string{"dead", "failed", "invalid", "unreachable", "revoked", "removed", "silent"}},
	{"\x1b[33m", []string{"stale", "warning", "unknown", "interrupted", "joining"}},
}

// colourTrouble colours the cells with a state of trouble. A cell follows two spaces or begins the line.
func colourTrouble(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, t := range trouble {
			for _, word := range t.words {
				line = colourCell(line, word, t.colour)
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func colourCell(line, word, colour string) string {
	const plain = "\x1b[0m"
	for from := 0; ; {
		at := strings.Index(line[from:], word)
		if at < 0 {
			return line
		}
		at += from
		end := at + len(word)
		begins := at == 0 || strings.HasSuffix(line[:at], "  ")
		ends := strings.HasPrefix(line[end:], "  ") || strings.HasPrefix(line[end:], "\n")
		if begins && ends {
			line = line[:at] + colour + word + plain + line[end:]
			end += len(colour) + len(plain)
		}
		from = end
	}
}
