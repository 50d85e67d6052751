package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/lockjson"
)

// PrintJSON prints a value as indented JSON without terminal control characters.
func PrintJSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	return printEscaped(w, text, err)
}

// PrintJSONLine prints a value as one line of JSON without terminal control characters.
func PrintJSONLine(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	return printEscaped(w, text, err)
}

func printEscaped(w io.Writer, text []byte, err error) error {
	if err == nil {
		_, err = w.Write(append(lockjson.Escape(text), '\n'))
	}
	return err
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// Word returns a name as one printable word; ambiguous names are quoted as Go strings.
func Word(s string) string {
	if s == "" || strings.ContainsAny(s, " \"") || Text(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// ShellWord returns a value as one word for a POSIX shell, quoted if necessary. Terminal control characters
// are escaped as bash, zsh and ksh read them.
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

// Message returns a text with terminal control characters escaped, except line breaks and tabs.
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

// Text returns a foreign text with terminal control characters escaped.
func Text(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}

// Duration formats an age or a duration for readers: 3m12s, 2d3h.
func Duration(d time.Duration) string { return lockjson.Duration(d) }

// Setting formats a duration exactly, in the form of flags: 10m, 24h.
func Setting(d time.Duration) string { return lockjson.Setting(d) }
