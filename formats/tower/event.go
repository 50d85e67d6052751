package tower

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"lockfs/formats/internal/stamp"
)

// Acquired is the audit event of an acquisition (section 4.3).
type Acquired struct {
	Event      string    `json:"event"`
	RequestID  string    `json:"request_id"`
	Timestamp  time.Time `json:"timestamp"`
	LockName   string    `json:"lock_name"`
	LockPath   string    `json:"lock_path"`
	TTLSeconds int64     `json:"ttl_seconds"`
}

// Acquired returns the event for a lock created at path.
func (l *Lock) Acquired(path string, at time.Time) Acquired {
	return Acquired{"lock_acquired", l.RequestID, stamp.Second(at), l.LockName, path, l.TTLSeconds}
}

// Stolen is the audit event of a stolen stale lock (section 7.2).
type Stolen struct {
	Event            string       `json:"event"`
	RequestID        string       `json:"request_id"` // of the new holder
	Timestamp        time.Time    `json:"timestamp"`
	LockName         string       `json:"lock_name"`
	PreviousLock     PreviousLock `json:"previous_lock"`
	PreviousLockHash string       `json:"previous_lock_hash"` // of the previous file's content
	Reason           string       `json:"reason"`
}

// PreviousLock is a stolen lock in the form of section 7.2.
type PreviousLock struct {
	RequestID       string    `json:"request_id"`
	Actor           string    `json:"actor"`
	Intent          string    `json:"intent"`
	CreatedAt       time.Time `json:"created_at"`
	LastHeartbeatAt time.Time `json:"last_heartbeat_at"`
	HostID          string    `json:"host_id"`
	PID             int       `json:"pid"`
}

// Stolen returns the event for lock l in the place of a previous one. The error is that of parsing the
// previous content.
func (l *Lock) Stolen(previous []byte, at time.Time) (Stolen, error) {
	p, err := Parse(previous)
	if err != nil {
		return Stolen{}, err
	}
	return Stolen{
		Event:     "lock_stolen",
		RequestID: l.RequestID,
		Timestamp: stamp.Second(at),
		LockName:  l.LockName,
		PreviousLock: PreviousLock{
			RequestID:       p.RequestID,
			Actor:           p.Actor,
			Intent:          p.Intent,
			CreatedAt:       p.CreatedAt,
			LastHeartbeatAt: p.LastHeartbeatAt,
			HostID:          p.HostID,
			PID:             p.PID,
		},
		PreviousLockHash: Hash(previous),
		Reason:           "stale_lock_forced",
	}, nil
}

// Hash returns the previous_lock_hash of a content: "sha256:" and the checksum in lower-case hexadecimal.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
