package tower

import (
	"bytes"
	"encoding/json"
	"os"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// Version is the lock_version of every lock of this format (section 3.2).
const Version = "v1"

// DefaultTTL is the time to live of a lock whose intent sets none, in seconds (section 3.3).
const DefaultTTL = 900

// DefaultActor is the actor if none is named (section 10.2).
const DefaultActor = "unknown"

// DefaultDir and DirMode are the directory of section 2.3 and its mode from section 12.1.
const (
	DefaultDir = "/root/tower-fleet/logs/locks"
	DirMode    = 0o700
)

// Lock is the content of a lock file (section 3.1).
type Lock struct {
	LockVersion     string          `json:"lock_version"`
	LockName        string          `json:"lock_name"`
	RequestID       string          `json:"request_id"`
	Actor           string          `json:"actor"`
	Intent          string          `json:"intent"`
	IntentVersion   string          `json:"intent_version"`
	HostID          string          `json:"host_id"`
	PID             int             `json:"pid"`
	CreatedAt       time.Time       `json:"created_at"`
	LastHeartbeatAt time.Time       `json:"last_heartbeat_at"`
	TTLSeconds      int64           `json:"ttl_seconds"`
	Metadata        json.RawMessage `json:"metadata,omitempty"` // an object, or nil
}

// New returns a lock of this process, acquired now, with the default actor and time to live and empty
// metadata. The caller may change them. The error is that of Validate, or means that the host has no name.
func New(name, requestID, intent, intentVersion string, now time.Time) (*Lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	l := &Lock{
		LockVersion:     Version,
		LockName:        name,
		RequestID:       requestID,
		Actor:           DefaultActor,
		Intent:          intent,
		IntentVersion:   intentVersion,
		HostID:          host,
		PID:             os.Getpid(),
		CreatedAt:       stamp.Second(now),
		LastHeartbeatAt: stamp.Second(now),
		TTLSeconds:      DefaultTTL,
		Metadata:        json.RawMessage("{}"),
	}
	return l, l.Validate()
}

// Parse reads and validates a lock file (section 12.2). It ignores members unknown to section 3.2. If one
// field is at fault, the error is a [lockfact.FieldError].
func Parse(content []byte) (*Lock, error) {
	object, err := strictjson.Parse(content)
	if err != nil {
		return nil, err
	}
	f := object.Fields()
	l := &Lock{
		LockVersion:     f.String("lock_version"),
		LockName:        f.String("lock_name"),
		RequestID:       f.String("request_id"),
		Actor:           f.String("actor"),
		Intent:          f.String("intent"),
		IntentVersion:   f.String("intent_version"),
		HostID:          f.String("host_id"),
		PID:             f.PID(),
		CreatedAt:       f.Time("created_at"),
		LastHeartbeatAt: f.Time("last_heartbeat_at"),
		TTLSeconds:      f.Int("ttl_seconds"),
		Metadata:        f.OptionalObject("metadata"),
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l, nil
}

// Validate checks each field of section 3.2 and returns a [lockfact.FieldError] for the first fault. Required
// strings must not be empty, names and request ids must have their form, and times must be in UTC.
func (l *Lock) Validate() error {
	if l.LockVersion != Version {
		return &lockfact.FieldError{Field: "lock_version", Problem: `must be "v1"`}
	}
	if err := ValidateName(l.LockName); err != nil {
		return err
	}
	if err := ValidateRequestID(l.RequestID); err != nil {
		return err
	}
	for _, field := range [...]struct{ name, value string }{
		{"actor", l.Actor},
		{"intent", l.Intent},
		{"intent_version", l.IntentVersion},
		{"host_id", l.HostID},
	} {
		if field.value == "" {
			return &lockfact.FieldError{Field: field.name, Problem: "is required"}
		}
		if err := validateText(field.name, field.value); err != nil {
			return err
		}
	}
	if err := lockfact.CheckPID(int64(l.PID)); err != nil {
		return err
	}
	if err := validateTime("created_at", l.CreatedAt); err != nil {
		return err
	}
	if err := validateTime("last_heartbeat_at", l.LastHeartbeatAt); err != nil {
		return err
	}
	if stamp.Latest(l.LastHeartbeatAt).Before(l.CreatedAt) {
		return &lockfact.FieldError{Field: "last_heartbeat_at", Problem: "lies before created_at"}
	}
	if l.TTLSeconds < 1 {
		return &lockfact.FieldError{Field: "ttl_seconds", Problem: "must be at least 1"}
	}
	return validateMetadata(l.Metadata)
}

func validateTime(field string, t time.Time) error {
	if t.IsZero() {
		return &lockfact.FieldError{Field: field, Problem: "is required"}
	}
	if err := stamp.CheckUTC(t); err != nil {
		return &lockfact.FieldError{Field: field, Problem: err.Error()}
	}
	return nil
}

func validateMetadata(m json.RawMessage) error {
	if m == nil || (json.Valid(m) && bytes.HasPrefix(bytes.TrimSpace(m), []byte("{"))) {
		return nil
	}
	return &lockfact.FieldError{Field: "metadata", Problem: "must be an object"}
}

// Render returns the text of a valid lock in the layout of section 3.1, with a final newline.
func (l *Lock) Render() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return strictjson.Render(l)
}
