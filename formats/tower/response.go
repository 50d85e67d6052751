package tower

import (
	"time"

	"lockfs/formats/internal/stamp"
)

// Blocked is the response to a request that finds an active lock (section 4.4).
type Blocked struct {
	Error      string        `json:"error"`
	LockName   string        `json:"lock_name"`
	HeldBy     BlockedHolder `json:"held_by"`
	Suggestion string        `json:"suggestion"`
}

// BlockedHolder is the holder in the form of section 4.4.
type BlockedHolder struct {
	RequestID       string    `json:"request_id"`
	Actor           string    `json:"actor"`
	Intent          string    `json:"intent"`
	CreatedAt       time.Time `json:"created_at"`
	LastHeartbeatAt time.Time `json:"last_heartbeat_at"`
}

// Blocked describes the lock to the blocked request.
func (l *Lock) Blocked() Blocked {
	return Blocked{
		Error:    "lock_blocked",
		LockName: l.LockName,
		HeldBy: BlockedHolder{
			RequestID:       l.RequestID,
			Actor:           l.Actor,
			Intent:          l.Intent,
			CreatedAt:       l.CreatedAt,
			LastHeartbeatAt: l.LastHeartbeatAt,
		},
		Suggestion: "Wait for completion or use --force-lock if stale",
	}
}

// BlockedStale is the response to a request that finds a stale lock without force (section 6.3).
type BlockedStale struct {
	Error      string      `json:"error"`
	LockName   string      `json:"lock_name"`
	StaleSince time.Time   `json:"stale_since"`
	AgeSeconds int64       `json:"age_seconds"` // since the last heartbeat
	TTLSeconds int64       `json:"ttl_seconds"`
	HeldBy     StaleHolder `json:"held_by"`
	Suggestion string      `json:"suggestion"`
}

// StaleHolder is the holder in the form of section 6.3.
type StaleHolder struct {
	RequestID string `json:"request_id"`
	Actor     string `json:"actor"`
	HostID    string `json:"host_id"`
	PID       int    `json:"pid"`
}

// BlockedStale describes the lock, stale at now, to a request without force.
func (l *Lock) BlockedStale(now time.Time) BlockedStale {
	return BlockedStale{
		Error:      "lock_stale",
		LockName:   l.LockName,
		StaleSince: stamp.Second(l.StaleSince()),
		AgeSeconds: l.AgeSeconds(now),
		TTLSeconds: l.TTLSeconds,
		HeldBy: StaleHolder{
			RequestID: l.RequestID,
			Actor:     l.Actor,
			HostID:    l.HostID,
			PID:       l.PID,
		},
		Suggestion: "Use --force-lock to acquire (stale lock will be logged)",
	}
}
