package control

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names and contents come from anybody, so nothing of them may look like a line or a field of its own, nor
// do anything to a terminal.

// oneLine shows a text as it is, or as a Go string literal if it is not plainly printable, or could be taken
// for a literal, or begins or ends with a blank.
func oneLine(s string) string {
	if strings.HasPrefix(s, `"`) || strings.TrimSpace(s) != s || !isPrintable(s) {
		return strconv.Quote(s)
	}
	return s
}

// oneWord is oneLine without blanks: they become \x20 in a literal. A text that is empty becomes "-".
func oneWord(s string) string {
	switch {
	case s == "":
		return "-"
	case s == "-" || strings.Contains(s, " "):
		s = strconv.Quote(s)
	default:
		s = oneLine(s)
	}
	return strings.ReplaceAll(s, " ", `\x20`)
}

func isPrintable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}
