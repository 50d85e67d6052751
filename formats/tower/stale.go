package tower

import (
	"fmt"
	"math"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// StaleSince is when the lock becomes stale unless another heartbeat comes: last_heartbeat_at plus
// ttl_seconds (section 6.1), at the latest. A last_heartbeat_at in whole seconds was cut to that.
func (l *Lock) StaleSince() time.Time {
	return stamp.After(stamp.Latest(l.LastHeartbeatAt), l.TTLSeconds)
}

// safeUntil is how long nobody takes the lock for stale, not even who does not know that its timestamp was cut.
func (l *Lock) safeUntil() time.Time { return stamp.After(l.LastHeartbeatAt, l.TTLSeconds) }

// ttl is at most the longest duration there is.
func (l *Lock) ttl() time.Duration {
	return time.Duration(min(l.TTLSeconds, int64(math.MaxInt64/time.Second))) * time.Second
}

// Age is the time since the last heartbeat; negative if that lies ahead of now.
func (l *Lock) Age(now time.Time) time.Duration { return now.Sub(l.LastHeartbeatAt) }

// AgeSeconds is the age in whole seconds, as section 6.3 shows it: 0 for a heartbeat ahead of now.
func (l *Lock) AgeSeconds(now time.Time) int64 { return int64(max(0, l.Age(now)) / time.Second) }

// farAhead is more than the clocks of two hosts that are kept right differ by.
const farAhead = time.Minute

// Suspicion says what is suspicious about a valid lock's timestamps (section 12.2); empty: nothing.
func (l *Lock) Suspicion(now time.Time) string {
	ahead := -l.Age(now)
	if ahead <= farAhead {
		return ""
	}
	return fmt.Sprintf("its last heartbeat lies %s ahead of this host's clock, so one of them is wrong, and it is not stale before %s",
		stamp.Seconds(ahead.Truncate(time.Second)), l.StaleSince().Format(time.RFC3339))
}

// Stale reports whether the last heartbeat is certainly more than ttl_seconds ago (section 6.1).
func (l *Lock) Stale(now time.Time) bool { return now.After(l.StaleSince()) }

// MaySteal reports whether a request that finds this lock may take it: only when it is stale and
// --force-lock was given, never while it is active (section 7.1).
func (l *Lock) MaySteal(now time.Time, force bool) bool { return force && l.Stale(now) }

// FactsOf gives the facts of a content; the error is that of Parse.
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	return lockfact.Facts{
		Format:    lockfact.Tower,
		Holder:    lockfact.HolderName(l.RequestID),
		Host:      written.Host,
		PID:       l.PID,
		IssuedAt:  written.ClusterTime(l.LastHeartbeatAt),
		ExpiresAt: written.Deadline(l.StaleSince()),
		Guard:     lockfact.GuardHost,
		OnStale:   lockfact.Keep,
	}, nil
}
