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

// FileName is the name of the lock file in a beads directory, and FileMode its mode.
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

// NewExclusiveLock returns a lock of this process, acquired now. The error means that the host has no name.
// Validate checks the holder.
func NewExclusiveLock(holder, version string) (*ExclusiveLock, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("unknown host name: %w", err)
	}
	return &ExclusiveLock{
		Holder:    holder,
		PID:       os.Getpid(),
		Hostname:  hostname,
		StartedAt: time.Now(),
		Version:   version,
	}, nil
}

// Parse reads and validates a lock file and ignores other members. The error is io.ErrUnexpectedEOF for a
// truncated content, and a [lockfact.FieldError] if one field is at fault.
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

// Validate checks the required fields and the pid. It returns a [lockfact.FieldError] for the first fault.
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

// Render returns the text of a valid lock in the layout of "Lock File Format", with a final newline.
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

// FactsOf returns the facts of a content; the error is that of Parse. A lock is remote if its hostname
// differs from the name of the writer's host (ignoring case). Then the facts have no PID ("Remote Hosts").
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
