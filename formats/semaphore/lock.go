package semaphore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// Defaults of the protocol, and the mode of lock files ("Security Considerations").
const (
	DefaultStaleTimeout  = 3600 * time.Second
	DefaultRetryInterval = 100 * time.Millisecond
	FileMode             = 0o644
)

// Lock is the content of a lock file ("Content Structure").
type Lock struct {
	PID       int    // of the holder
	Timestamp int64  // time of the acquisition, in seconds since the Unix epoch
	Tag       string // optional, for readers

	// Unknown holds the fields of later versions in order, for Render.
	Unknown []Field
}

// Field is one line of a lock file.
type Field struct{ Key, Value string }

// New returns a lock acquired now by this process. The tag may be empty; New trims it.
func New(tag string, now time.Time) *Lock {
	return &Lock{PID: os.Getpid(), Timestamp: now.Unix(), Tag: strings.TrimSpace(tag)}
}

// Time returns the time of the acquisition.
func (l *Lock) Time() time.Time { return time.Unix(l.Timestamp, 0).UTC() }

// Validate returns a [lockfact.FieldError] for the first invalid field. The pid must be positive and fit 32
// bits. The timestamp must be between 1970 and 9999. No value has line breaks.
func (l *Lock) Validate() error {
	if err := lockfact.CheckPID(int64(l.PID)); err != nil {
		return err
	}
	if l.Timestamp < 0 || l.Timestamp > stamp.Max {
		problem := fmt.Sprintf("%d does not lie between 1970 and 9999 in seconds", l.Timestamp)
		return &lockfact.FieldError{Field: "timestamp", Problem: problem}
	}
	if err := checkValue("tag", l.Tag); err != nil {
		return err
	}
	for _, f := range l.Unknown {
		if err := f.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (f Field) validate() error {
	key := lockfact.HolderName(f.Key)
	switch {
	case f.Key == "", strings.ContainsAny(f.Key, "=\r\n"), !utf8.ValidString(f.Key):
		return &lockfact.FieldError{Field: key, Problem: "is no name of a field"}
	case isKnown(f.Key):
		return &lockfact.FieldError{Field: key, Problem: "appears twice"}
	case strings.ContainsAny(f.Value, "\r\n"), !utf8.ValidString(f.Value):
		return &lockfact.FieldError{Field: key, Problem: "must be one line of valid UTF-8"}
	}
	return nil
}

var errSpace = errors.New("no space is allowed around = and at the end")

// checkValue refuses values unfit for a line of a known field.
func checkValue(field, value string) error {
	if strings.ContainsAny(value, "\r\n") || !utf8.ValidString(value) {
		return &lockfact.FieldError{Field: field, Problem: "must be one line of valid UTF-8"}
	}
	if strings.TrimSpace(value) != value {
		return &lockfact.FieldError{Field: field, Problem: errSpace.Error()}
	}
	return nil
}

// isKnown reports whether this version of the protocol defines the field.
func isKnown(key string) bool { return key == "pid" || key == "timestamp" || key == "tag" }

// Render returns the text of a valid lock, with LF: pid, timestamp, tag unless it is empty, and the unknown
// fields.
func (l *Lock) Render() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, "pid=%d\ntimestamp=%d\n", l.PID, l.Timestamp)
	if l.Tag != "" {
		text = fmt.Appendf(text, "tag=%s\n", l.Tag)
	}
	for _, f := range l.Unknown {
		text = fmt.Appendf(text, "%s=%s\n", f.Key, f.Value)
	}
	return text, nil
}
