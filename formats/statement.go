package formats

import (
	"strings"

	"lockfs/formats/pid"
)

// Statement is the pid in a lock of format pid, the only content of such a lock.
type Statement struct {
	PID int

	// Conditional: data could have this content too, so the lock counts only under a name that was created
	// exclusively or indicates a lock.
	Conditional bool
}

// StatementIn reports whether a content, or the target of a symbolic link, is nothing but a pid of the
// writer's family. The family is the writer, its ancestors and its descendants. name is the name of the file,
// or empty. Blanks, line breaks and NUL bytes around the content do not matter. These are all the shapes, for
// process 1234 on host web1:
//
//	1234                              most programs; also as the target of a link (Twisted)
//	first line 1234 of a *.pid file   PostgreSQL
//	00001234                          padded with zeros, up to ten digits
//	web1 1234  web1:1234  web1.1234   also the full name of the host, and user@ before it
//	web1-1234                         Chromium
//	web1/f0000083:1234                Mercurial: the pid namespace follows the host
//	user@web1.1234:1600000000         Emacs: the time of the boot follows the pid
//	1234 web1                         git gc, SoftFileLock (with a line break between)
//	      1234 minicom root           HoneyDanBer UUCP: ten columns, then the program and the user
//	1234 300                          the number of seconds follows, in a line of its own
//	pid=1234                          shell scripts; a half-written semaphore lock is this too
//	{"pid":1234}                      JSON with this member alone
//
// All but the first two are conditional; so is the pid 1, which may be a counter. A content with any other
// text, such as a log line with host and pid, has none of these shapes.
func StatementIn(name string, content []byte, w Writer) (s Statement, found bool) {
	if bare, err := pid.Parse(content); err == nil {
		return Statement{bare.PID, bare.PID == 1}, w.isKin(bare.PID)
	}
	if len(content) > maxEvidence {
		return Statement{}, false
	}
	line, _, _ := strings.Cut(string(content), "\n")
	if number := pidOf(strings.Trim(line, padding)); strings.HasSuffix(name, ".pid") && number != 0 {
		return Statement{PID: number}, w.isKin(number)
	}
	text := strings.Trim(string(content), padding)
	for _, number := range []int{
		zeroPadded(text), w.afterHost(text), w.beforeHost(text), columns(string(content)), twoNumbers(text), assigned(text),
	} {
		if number != 0 && w.isKin(number) {
			return Statement{number, true}, true
		}
	}
	return Statement{}, false
}

// FactsOf returns the facts of a lock with this statement.
func (s Statement) FactsOf(written Origin) Facts {
	facts := (&pid.Lock{PID: s.PID}).Facts(written)
	facts.Conditional = s.Conditional
	return facts
}

const (
	blanks  = " \t\r\n"
	padding = blanks + "\x00"
)

func (w Writer) isKin(number int) bool { return w.IsKin != nil && w.IsKin(number) }

// zeroPadded reads 00001234.
func zeroPadded(text string) int {
	if len(text) > uucpWidth || !strings.HasPrefix(text, "0") {
		return 0
	}
	return pidOf(strings.TrimLeft(text, "0"))
}

// afterHost reads [user@]HOST[/namespace] with a pid behind a blank, a colon, a hyphen or a full stop, and
// perhaps :number.
func (w Writer) afterHost(text string) int {
	if user, rest, found := strings.Cut(text, "@"); found && user != "" && !strings.ContainsAny(user, padding) {
		text = rest
	}
	for _, rest := range w.afterHosts(text) {
		if namespace, after, found := strings.Cut(rest, ":"); found && strings.HasPrefix(namespace, "/") && !strings.ContainsAny(namespace, padding) {
			rest = ":" + after
		}
		if rest == "" || !strings.Contains(blanks+":-.", rest[:1]) {
			continue
		}
		digits := rest[1:]
		if strings.Contains(blanks, rest[:1]) {
			digits = strings.TrimLeft(digits, blanks)
		}
		digits, boot, found := strings.Cut(digits, ":")
		if found && !isDigits(boot) {
			continue
		}
		if number := pidOf(digits); number != 0 {
			return number
		}
	}
	return 0
}

// beforeHost reads 1234 HOST.
func (w Writer) beforeHost(text string) int {
	digits := leadingDigits(text)
	rest := text[len(digits):]
	host := strings.TrimLeft(rest, blanks)
	if len(host) == len(rest) {
		return 0
	}
	for _, after := range w.afterHosts(host) {
		if after == "" {
			return pidOf(digits)
		}
	}
	return 0
}

// afterHosts returns the text after the name of the writer's host, once for each matching name. A domain is
// part of the name, known or not.
func (w Writer) afterHosts(text string) (rests []string) {
	for _, host := range w.Hosts {
		short, _, _ := strings.Cut(host, ".")
		for _, name := range []string{host, short} {
			if len(name) < 2 || !hasLetter(name) || len(text) < len(name) || !strings.EqualFold(text[:len(name)], name) {
				continue
			}
			rest := text[len(name):]
			rests = append(rests, rest)
			if domain := domainIn(rest); name == short && domain > 0 {
				rests = append(rests, rest[domain:])
			}
		}
	}
	return rests
}

// domainIn returns the length of a domain of at least two labels at the beginning of a text, with the first
// full stop. A label of digits is not part of it.
func domainIn(text string) (length int) {
	labels := 0
	for length < len(text) && text[length] == '.' {
		end := length + 1
		for end < len(text) && (inWord(text[end]) || text[end] == '-') {
			end++
		}
		if !hasLetter(text[length:end]) {
			break
		}
		length = end
		labels++
	}
	if labels < 2 {
		return 0
	}
	return length
}

// uucpWidth is the width of the pid in a lock of HoneyDanBer UUCP.
const uucpWidth = 10

// columns reads a pid in ten columns, then one word or two.
func columns(content string) int {
	line := strings.TrimRight(content, padding)
	if len(line) <= uucpWidth || line[0] != ' ' || line[uucpWidth] != ' ' || strings.ContainsAny(line, "\n\x00") {
		return 0
	}
	if words := len(strings.Fields(line[uucpWidth:])); words < 1 || words > 2 {
		return 0
	}
	return pidOf(strings.TrimLeft(line[:uucpWidth], " "))
}

// twoNumbers reads a pid and another number, in two lines.
func twoNumbers(text string) int {
	first, second, _ := strings.Cut(text, "\n")
	if !isDigits(second) {
		return 0
	}
	return pidOf(strings.TrimRight(first, blanks))
}

// assigned reads pid=1234 and {"pid":1234}.
func assigned(text string) int {
	if digits, found := strings.CutPrefix(text, "pid="); found {
		return pidOf(digits)
	}
	inside, found := strings.CutPrefix(text, "{")
	inside, closed := strings.CutSuffix(inside, "}")
	name, value, colon := strings.Cut(inside, ":")
	if !found || !closed || !colon || strings.Trim(name, blanks) != `"pid"` {
		return 0
	}
	return pidOf(strings.Trim(value, blanks))
}

func leadingDigits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

func isDigits(text string) bool { return text != "" && leadingDigits(text) == text }
