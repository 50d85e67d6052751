package semaphore

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"lockfs/formats/lockfact"
)

var errNotUTF8 = errors.New("not valid UTF-8")

// wholeTimestamp is the number of digits of a timestamp from 2001 to 2286.
const wholeTimestamp = 10

// Parse reads and validates a lock file by "Format Rules" and "Parsing in Python". Each line is a field and
// ends with LF or CRLF. Parse trims lines, allows no spaces around "=", and ignores lines without "=" and
// unknown fields (but keeps the latter for Render). A known field must not appear twice. If one field is at
// fault, the error is a [lockfact.FieldError].
//
// A last line without terminator may be half of a line. The begin of a timestamp is a much earlier timestamp,
// so a timestamp without terminator counts only with all ten digits.
func Parse(content []byte) (*Lock, error) {
	if !utf8.Valid(content) {
		return nil, errNotUTF8
	}
	var r reader
	for number, rest := 1, string(content); rest != ""; number++ {
		line, after, terminated := strings.Cut(rest, "\n")
		rest = after
		if err := r.line(strings.TrimSpace(line), terminated); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	for _, required := range [...]string{"pid", "timestamp"} {
		if !r.seen[required] {
			return nil, &lockfact.FieldError{Field: required, Problem: "is required"}
		}
	}
	if err := r.lock.Validate(); err != nil {
		return nil, err
	}
	return &r.lock, nil
}

// IsMarked reports whether a content has the lines pid= and timestamp=, with any values. A last line that may
// be incomplete does not count.
func IsMarked(content []byte) bool {
	pid, timestamp := false, false
	for len(content) > 0 {
		line, after, terminated := bytes.Cut(content, []byte("\n"))
		content, line = after, bytes.TrimSpace(line)
		if value, found := bytes.CutPrefix(line, []byte("pid=")); found && (terminated || len(value) > 0) {
			pid = true
		}
		if value, found := bytes.CutPrefix(line, []byte("timestamp=")); found && (terminated || len(value) >= wholeTimestamp) {
			timestamp = true
		}
	}
	return pid && timestamp
}

// reader collects the fields of a file line by line.
type reader struct {
	lock Lock
	seen map[string]bool // the known fields
}

func (r *reader) line(line string, terminated bool) error {
	key, value, ok := strings.Cut(line, "=")
	if !ok || key == "" {
		return nil
	}
	if bare := strings.Trim(key, " \t"); bare != key && isKnown(bare) {
		return &lockfact.FieldError{Field: bare, Problem: errSpace.Error()}
	}
	if !isKnown(key) {
		r.lock.Unknown = append(r.lock.Unknown, Field{key, value})
		return nil
	}
	if r.seen[key] {
		return &lockfact.FieldError{Field: key, Problem: "appears twice"}
	}
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	r.seen[key] = true
	if !terminated && key == "timestamp" && len(value) < wholeTimestamp {
		return &lockfact.FieldError{Field: key, Problem: "its line is not complete"}
	}
	return r.known(key, value)
}

func (r *reader) known(key, value string) error {
	if err := checkValue(key, value); err != nil {
		return err
	}
	if key == "tag" {
		r.lock.Tag = value
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return &lockfact.FieldError{Field: key, Problem: "is out of range"}
	case err != nil || value[0] == '+':
		return &lockfact.FieldError{Field: key, Problem: "must be an integer"}
	}
	if key == "timestamp" {
		r.lock.Timestamp = n
		return nil
	}
	r.lock.PID = int(n)
	return lockfact.CheckPID(n)
}
