package tower

import (
	"fmt"
	"math"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// StaleSince returns the latest time at which the lock becomes stale without another heartbeat:
// last_heartbeat_at plus ttl_seconds (section 6.1). A last_heartbeat_at in whole seconds was cut to the
// second.
func (l *Lock) StaleSince() time.Time {
	return stamp.After(stamp.Latest(l.LastHeartbeatAt), l.TTLSeconds)
}

// safeUntil returns the time until which no program takes the lock for stale, even one unaware of the cut.
func (l *Lock) safeUntil() time.Time { return stamp.After(l.LastHeartbeatAt, l.TTLSeconds) }

// ttl is limited to the longest duration.
func (l *Lock) ttl() time.Duration {
	return time.Duration(min(l.TTLSeconds, int64(math.MaxInt64/time.Second))) * time.Second
}

// Age returns the time since the last heartbeat; negative if the heartbeat is in the future.
func (l *Lock) Age(now time.Time) time.Duration { return now.Sub(l.LastHeartbeatAt) }

// AgeSeconds returns the age in whole seconds for section 6.3; 0 for a heartbeat in the future.
func (l *Lock) AgeSeconds(now time.Time) int64 { return int64(max(0, l.Age(now)) / time.Second) }

// farAhead is larger than the difference of two well-kept clocks.
const farAhead = time.Minute

// Suspicion returns a doubt about a valid lock's timestamps (section 12.2); empty: none.
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

// MaySteal reports whether a request may steal the lock: it must be stale, and --force-lock given (section
// 7.1).
func (l *Lock) MaySteal(now time.Time, force bool) bool { return force && l.Stale(now) }

// FactsOf returns the facts of a content; the error is that of Parse.
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
