package forrst

import (
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// Lock is the content of a lockfs server's file for a key. The specification leaves the storage to the
// server; the URN in front distinguishes the file from other JSON.
type Lock struct {
	URN        string    `json:"urn"` // always URN
	Key        string    `json:"key"` // the full key
	Owner      string    `json:"owner"`
	AcquiredAt time.Time `json:"acquired_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	Request    string    `json:"request,omitempty"` // the [Identity] of the request that acquired it
}

// NewLock returns a lock for valid options, acquired now. It makes an owner if the options have none.
func NewLock(o *Options, function string, now time.Time) (*Lock, error) {
	key, err := o.FullKey(function)
	if err != nil {
		return nil, err
	}
	owner := o.Owner
	if owner == "" {
		owner = NewOwner()
	}
	now = now.UTC()
	l := &Lock{URN: URN, Key: key, Owner: owner, AcquiredAt: now, ExpiresAt: now.Add(o.TTL.Duration())}
	return l, l.Validate()
}

// Parse reads and validates a lock file and ignores other members. If one field is at fault, the error is a
// [lockfact.FieldError].
func Parse(content []byte) (*Lock, error) {
	object, err := strictjson.Parse(content)
	if err != nil {
		return nil, err
	}
	f := object.Fields()
	l := &Lock{
		URN:        f.String("urn"),
		Key:        f.String("key"),
		Owner:      f.String("owner"),
		AcquiredAt: f.Time("acquired_at"),
		ExpiresAt:  f.Time("expires_at"),
		Request:    f.OptionalString("request"),
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l, nil
}

// Validate returns a [lockfact.FieldError] for the first invalid field.
func (l *Lock) Validate() error {
	if l.URN != URN {
		return &lockfact.FieldError{Field: "urn", Problem: "must be " + URN}
	}
	if _, err := FileName(l.Key); err != nil {
		return err
	}
	if err := ValidateOwner(l.Owner); err != nil {
		return err
	}
	for _, t := range [...]struct {
		field string
		time  time.Time
	}{{"acquired_at", l.AcquiredAt}, {"expires_at", l.ExpiresAt}} {
		if t.time.IsZero() {
			return &lockfact.FieldError{Field: t.field, Problem: "is required"}
		}
		if err := stamp.CheckUTC(t.time); err != nil {
			return &lockfact.FieldError{Field: t.field, Problem: err.Error()}
		}
	}
	return nil
}

// Render returns a valid lock as indented JSON with a final newline.
func (l *Lock) Render() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return strictjson.Render(l)
}

// Expired reports whether now is after expires_at.
func (l *Lock) Expired(now time.Time) bool { return now.After(l.ExpiresAt) }

// FactsOf returns the facts of a content; the error is that of Parse.
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	return lockfact.Facts{
		Format:    lockfact.Forrst,
		Holder:    lockfact.HolderName(l.Owner),
		Host:      written.Host,
		IssuedAt:  written.ClusterTime(l.AcquiredAt),
		ExpiresAt: written.Deadline(l.ExpiresAt),
		Guard:     lockfact.GuardOwner,
		OnStale:   lockfact.Remove,
	}, nil
}
