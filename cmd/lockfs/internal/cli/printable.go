package cli

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Word shows a name as one word of a line, and as a Go string where that is not what it looks like.
func Word(s string) string {
	if s == "" || strings.ContainsAny(s, " \"") || Text(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// Text shows what somebody else wrote without what a terminal would do to it.
func Text(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}
