package manual

import (
	"fmt"
	"io"
	"strings"
)

// writePlain writes a chapter for people to read on a terminal: without marks, as wide as it was written.
func writePlain(w io.Writer, chapter Chapter) {
	blocks := parse(chapter.Source, inChapters)
	for i, b := range blocks {
		if i > 0 && (b.kind != item || blocks[i-1].kind != item) {
			fmt.Fprintln(w)
		}
		text := strings.Join(b.lines, "\n")
		switch b.kind {
		case heading:
			text = plain(text)
			if b.level < 3 {
				text = strings.ToUpper(text)
			}
			fmt.Fprintln(w, text)
		case paragraph:
			fmt.Fprintln(w, plain(text))
		case item:
			fmt.Fprintln(w, "-", strings.ReplaceAll(plain(text), "\n", "\n  "))
		case code:
			for _, line := range b.lines {
				fmt.Fprintln(w, strings.TrimRight("    "+line, " "))
			}
		}
	}
}

func plain(text string) string {
	var b strings.Builder
	for _, s := range spans(text) {
		b.WriteString(s.text)
	}
	return b.String()
}
