// Package pid is the plain pid file: a decimal number that is the process holding the lock, which lives
// as long as that process.
//
// Tools write it in several ways: "1234", "1234\n", "1234\x00" (shadow-utils), and "      1234\n" by those that keep to
// the UUCP (HoneyDanBer) layout. A number that no process can have is none, so that a time in seconds is not taken for a process. Other
// shapes of a lock with nothing but a pid, such as the targets of links, need the names of the writer's host: package formats has them.
package pid

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"lockfs/formats/lockfact"
)

// Max is the largest number that Linux lets /proc/sys/kernel/pid_max be.
const Max = 1 << 22

// padding is what may surround the number: C programs write the byte that ends a string too.
const padding = " \t\r\n\x00"

// Lock is the content of a pid file.
type Lock struct{ PID int }

// New describes a lock that this process takes.
func New() *Lock { return &Lock{os.Getpid()} }

// Parse reads a pid file: digits, with blanks, line breaks and NUL bytes before and after. Signs, leading zeros
// and numbers outside 1..Max are refused with a [lockfact.FieldError].
func Parse(content []byte) (*Lock, error) {
	digits := bytes.Trim(content, padding)
	if len(digits) == 0 {
		return nil, &lockfact.FieldError{Field: "pid", Problem: "is required"}
	}
	if len(bytes.Trim(digits, "0123456789")) > 0 || digits[0] == '0' {
		return nil, &lockfact.FieldError{Field: "pid", Problem: "must be nothing but a decimal number"}
	}
	n, err := strconv.ParseInt(string(digits[:min(len(digits), 20)]), 10, 64)
	if err != nil || n > Max {
		n = Max + 1
	}
	l := &Lock{int(n)}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l, nil
}

// Validate checks that a process can have this number.
func (l *Lock) Validate() error {
	if l.PID < 1 || l.PID > Max {
		problem := fmt.Sprintf("must be between 1 and %d", Max)
		return &lockfact.FieldError{Field: "pid", Problem: problem}
	}
	return nil
}

// Render writes the number and a newline.
func (l *Lock) Render() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%d\n", l.PID), nil
}

// FactsOf gives the facts of a content; the error is that of Parse.
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	return l.Facts(written), nil
}

// Facts are those of a lock with this pid.
func (l *Lock) Facts(written lockfact.Origin) lockfact.Facts {
	return lockfact.Facts{
		Format:  lockfact.PID,
		Holder:  strconv.Itoa(l.PID),
		Host:    written.Host,
		PID:     l.PID,
		Guard:   lockfact.GuardHost,
		OnStale: lockfact.Remove,
	}
}
