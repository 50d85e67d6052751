package tower

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// State is the state of a lock in the terms of section 6.2.
type State string

// The states. An invalid file counts as active and is never stolen.
const (
	Free    State = "free"
	Active  State = "active"
	Stale   State = "stale"
	Invalid State = "invalid"
)

// Status is a report about a lock, made without changing it.
type Status struct {
	LockName   string          `json:"lock_name"`
	LockPath   string          `json:"lock_path"`
	State      State           `json:"state"`
	AgeSeconds *int64          `json:"age_seconds,omitempty"` // since the last heartbeat
	StaleSince *time.Time      `json:"stale_since,omitempty"` // if it is stale
	Problem    string          `json:"problem,omitempty"`     // the fault of an invalid file
	Warning    string          `json:"warning,omitempty"`     // a doubt about a valid one
	Token      uint64          `json:"token,omitempty"`       // on a lockfs mount: larger for each holder
	Content    json.RawMessage `json:"lock,omitempty"`        // as in the file, with the fields of other programs
	Lock       *Lock           `json:"-"`
}

// Check returns the state of a lock (section 11.2).
func (d Dir) Check(lockName string) (Status, error) {
	s := Status{LockName: lockName, LockPath: d.LockPath(lockName), State: Free}
	l, content, err := d.Read(lockName)
	var invalid *InvalidError
	switch {
	case errors.As(err, &invalid):
		s.State, s.Problem = Invalid, invalid.Err.Error()
		return s, nil
	case errors.Is(err, fs.ErrNotExist):
		_, err = os.Stat(d.Path)
		return s, err
	case err != nil:
		return s, err
	}
	now := d.Now()
	age := l.AgeSeconds(now)
	s.State, s.Lock, s.Content, s.AgeSeconds, s.Warning = Active, l, content, &age, l.Suspicion(now)
	s.Token = d.token(lockName)
	if d.stale(l) {
		since := stamp.Second(l.StaleSince())
		s.State, s.StaleSince = Stale, &since
	}
	return s, nil
}

// List returns the state of each lock in the directory, sorted by name (section 11.1).
func (d Dir) List() ([]Status, error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, err
	}
	locks := []Status{}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), FileName(""))
		if !ok {
			continue
		}
		s, err := d.Check(name)
		var field *lockfact.FieldError
		if errors.As(err, &field) { // a fault of the name
			s.State, s.Problem = Invalid, err.Error()
		} else if err != nil {
			return nil, err
		}
		if s.State != Free { // not removed meanwhile
			locks = append(locks, s)
		}
	}
	return locks, nil
}
