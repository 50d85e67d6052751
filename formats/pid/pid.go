// Package pid is the plain pid file: the decimal number of the process holding the lock. The lock lives as
// long as the process.
//
// Tools write it in several ways: "1234", "1234\n", "1234\x00" (shadow-utils), and "      1234\n" in the UUCP
// (HoneyDanBer) layout. A number too large for a process is invalid, so a time in seconds is no pid. Other
// shapes, such as the targets of links, need the names of the writer's host: package formats has them.
package pid

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"lockfs/formats/lockfact"
)

// Max is the maximum of Linux's /proc/sys/kernel/pid_max.
const Max = 1 << 22

// padding may surround the number: C programs also write the byte that ends a string.
const padding = " \t\r\n\x00"

// Lock is the content of a pid file.
type Lock struct{ PID int }

// New returns a lock of this process.
func New() *Lock { return &Lock{os.Getpid()} }

// Parse parses a pid file: digits, with blanks, line breaks and NUL bytes around. Signs, leading zeros and
// numbers outside 1..Max give a [lockfact.FieldError].
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

// Render returns the number and a newline.
func (l *Lock) Render() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%d\n", l.PID), nil
}

// FactsOf returns the facts of a content, or the error of Parse.
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	return l.Facts(written), nil
}

// Facts returns the facts of a lock with this pid.
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
