package cli

import (
	"fmt"
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

// ShellWord returns a value as one word of a command for a POSIX shell, in quotes where the shell would read it otherwise. Characters that a
// terminal obeys are escaped as bash, zsh and ksh read them.
func ShellWord(s string) string {
	switch {
	case Text(s) != s:
		var escaped strings.Builder
		for _, b := range []byte(s) {
			if b < ' ' || b > '~' || b == '\'' || b == '\\' {
				fmt.Fprintf(&escaped, `\x%02x`, b)
			} else {
				escaped.WriteByte(b)
			}
		}
		return "$'" + escaped.String() + "'"
	case s == "" || strings.ContainsFunc(s, isShellSpecial) || s[0] == '~':
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func isShellSpecial(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./+,:@%=~^", r)
}

// Message returns a text of several words, in which every character is escaped that a terminal might obey. Line breaks and tabs stay.
func Message(s string) string {
	var shown strings.Builder
	for i, r := range s {
		switch {
		case r == '\n', r == '\t', unicode.IsPrint(r) && r != utf8.RuneError:
			shown.WriteRune(r)
		case r == utf8.RuneError:
			fmt.Fprintf(&shown, `\x%02x`, s[i])
		default:
			shown.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return shown.String()
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
