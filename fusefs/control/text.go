package control

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names and contents are untrusted. They must not imitate lines or fields, nor control a terminal.

// oneLine returns a plain text unchanged, and others as a Go string literal: unprintable ones, ones like a
// literal, and ones with a blank at the begin or end.
func oneLine(s string) string {
	if strings.HasPrefix(s, `"`) || strings.TrimSpace(s) != s || !isPrintable(s) {
		return strconv.Quote(s)
	}
	return s
}

// oneWord is oneLine without blanks, which become \x20 in a literal. It returns "-" for an empty text.
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
