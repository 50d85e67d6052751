package beads

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// FileName is the name of the lock file in a beads directory, and FileMode the mode to create it with.
const (
	FileName = ".exclusive-lock"
	FileMode = 0o644
)

// ExclusiveLock is the content of a lock file ("Lock File Format").
type ExclusiveLock struct {
	Holder    string    `json:"holder"`
	PID       int       `json:"pid"`
	Hostname  string    `json:"hostname"`
	StartedAt time.Time `json:"started_at"`
	Version   string    `json:"version"` // optional
}

// NewExclusiveLock describes a lock that this process takes now. Only a host without a name is an
// error; an empty holder is for Validate to find.
func NewExclusiveLock(holder, version string) (*ExclusiveLock, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot tell the hostname: %w", err)
	}
	return &ExclusiveLock{
		Holder:    holder,
		PID:       os.Getpid(),
		Hostname:  hostname,
		StartedAt: time.Now(),
		Version:   version,
	}, nil
}

// Parse reads and validates a lock file. Other members are ignored. The error is io.ErrUnexpectedEOF for
// a content that ends too soon, and a [lockfact.FieldError] when one field is at fault.
func Parse(content []byte) (*ExclusiveLock, error) {
	object, err := strictjson.Parse(content)
	if err != nil {
		return nil, err
	}
	f := object.Fields()
	e := &ExclusiveLock{
		Holder:    f.String("holder"),
		PID:       f.PID(),
		Hostname:  f.String("hostname"),
		StartedAt: f.Time("started_at"),
		Version:   f.OptionalString("version"),
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}

// Validate checks that the required fields are there and that the pid is one, and gives a
// [lockfact.FieldError] for the first that is not.
func (e *ExclusiveLock) Validate() error {
	if e.Holder == "" {
		return &lockfact.FieldError{Field: "holder", Problem: "is required"}
	}
	if err := lockfact.CheckPID(int64(e.PID)); err != nil {
		return err
	}
	for _, field := range [...]struct{ name, value string }{{"holder", e.Holder}, {"hostname", e.Hostname}, {"version", e.Version}} {
		if !utf8.ValidString(field.value) { // JSON would replace it
			return &lockfact.FieldError{Field: field.name, Problem: "must be valid UTF-8"}
		}
	}
	switch {
	case e.Hostname == "":
		return &lockfact.FieldError{Field: "hostname", Problem: "is required"}
	case e.StartedAt.IsZero():
		return &lockfact.FieldError{Field: "started_at", Problem: "is required"}
	}
	return nil
}

// Render writes a valid lock in the order and layout of "Lock File Format", ending with a newline.
func (e *ExclusiveLock) Render() ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// FactsOf gives the facts of a content; the error is that of Parse. A lock whose hostname is not that of
// the host that wrote it (compared without case) is remote: there is no process to watch, and the
// facts have no PID ("Remote Hosts").
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	e, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	facts := lockfact.Facts{
		Format:   lockfact.Beads,
		Holder:   lockfact.HolderName(e.Holder),
		Host:     written.Host,
		IssuedAt: written.ClusterTime(e.StartedAt),
		Guard:    lockfact.GuardHost,
		OnStale:  lockfact.Remove,
	}
	here := written.Hostname
	if here == "" {
		here = written.Host
	}
	if strings.EqualFold(e.Hostname, here) {
		facts.PID = e.PID
	}
	return facts, nil
}
