package forrst

import (
	"encoding/json"
	"strings"
	"time"

	"lockfs/formats/internal/strictjson"
)

// The system functions.
const (
	ReleaseFunction      = "urn:cline:forrst:ext:atomic-lock:fn:release"
	ForceReleaseFunction = "urn:cline:forrst:ext:atomic-lock:fn:force-release"
	StatusFunction       = "urn:cline:forrst:ext:atomic-lock:fn:status"
)

// ReleaseArguments names a lock by its full key, and its owner.
type ReleaseArguments struct {
	Key   string `json:"key"`
	Owner string `json:"owner"`
}

// KeyArguments names a lock by its full key: the arguments of force-release and status.
type KeyArguments struct {
	Key string `json:"key"`
}

// ParseReleaseArguments reads the arguments of release. Both are required.
func ParseReleaseArguments(raw json.RawMessage) (ReleaseArguments, error) {
	object, err := strictjson.Parse(raw)
	if err != nil {
		return ReleaseArguments{}, within("arguments", err)
	}
	f := object.Fields()
	a := ReleaseArguments{Key: f.String("key"), Owner: f.String("owner")}
	if err := f.Err(); err != nil {
		return ReleaseArguments{}, err
	}
	if err := ValidateOwner(a.Owner); err != nil {
		return ReleaseArguments{}, err
	}
	_, err = FileName(a.Key)
	return a, err
}

// ParseKeyArguments reads the arguments of force-release and of status.
func ParseKeyArguments(raw json.RawMessage) (KeyArguments, error) {
	object, err := strictjson.Parse(raw)
	if err != nil {
		return KeyArguments{}, within("arguments", err)
	}
	f := object.Fields()
	a := KeyArguments{Key: f.String("key")}
	if err := f.Err(); err != nil {
		return KeyArguments{}, err
	}
	_, err = FileName(a.Key)
	return a, err
}

// ReleaseResult is the result of release.
type ReleaseResult struct {
	Released bool   `json:"released"`
	Key      string `json:"key"`
}

// ForceReleaseResult is the result of force-release.
type ForceReleaseResult struct {
	Released bool   `json:"released"`
	Key      string `json:"key"`
	Forced   bool   `json:"forced"`
}

// StatusResult is the result of status. Without a lock it has only Key and Locked, and a Hint if no lock can
// have this key.
type StatusResult struct {
	Key          string    `json:"key"`
	Locked       bool      `json:"locked"`
	Owner        string    `json:"owner,omitempty"`
	AcquiredAt   time.Time `json:"acquired_at,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	TTLRemaining int64     `json:"ttl_remaining,omitempty"` // seconds, rounded up
	Hint         string    `json:"hint,omitempty"`          // not in the document
}

// StatusOf returns the status of a key at now. lock is nil if there is none; an expired lock counts as not
// held.
func StatusOf(fullKey string, lock *Lock, now time.Time) StatusResult {
	if lock == nil || lock.Expired(now) {
		return StatusResult{Key: fullKey, Hint: hintAt(fullKey)}
	}
	left := lock.ExpiresAt.Sub(now)
	return StatusResult{
		Key:          fullKey,
		Locked:       true,
		Owner:        lock.Owner,
		AcquiredAt:   lock.AcquiredAt,
		ExpiresAt:    lock.ExpiresAt,
		TTLRemaining: int64((left + time.Second - 1) / time.Second),
	}
}

// hintAt suggests full keys for an incomplete one.
func hintAt(key string) string {
	if strings.HasPrefix(key, keyPrefix) {
		return ""
	}
	return "give the full key, " + keyPrefix + "FUNCTION:" + key + " or, for the scope global, " + keyPrefix + key
}
