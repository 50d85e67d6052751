package manual

import (
	"fmt"
	"io"
	"strings"
)

// writePlain writes a chapter for a terminal: without marks, in the width of the source.
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
			fmt.Fprintln(w, b.mark, strings.ReplaceAll(plain(text), "\n", "\n"+strings.Repeat(" ", len(b.mark)+1)))
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
