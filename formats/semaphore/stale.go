package semaphore

import (
	"strconv"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// Stale reports whether the lock is certainly older than timeout ("Stale Detection").
func (l *Lock) Stale(now time.Time, timeout time.Duration) bool {
	return now.After(l.staleSince(timeout))
}

// staleSince returns the latest time at which the lock becomes stale: its timestamp was cut to the second.
func (l *Lock) staleSince(timeout time.Duration) time.Time {
	return stamp.Latest(l.Time()).Add(timeout)
}

// FactsOf returns the facts of a content; the error is that of Parse. The holder is the pid, because the
// format has no other name.
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	return lockfact.Facts{
		Format:    lockfact.Semaphore,
		Holder:    strconv.Itoa(l.PID),
		Host:      written.Host,
		PID:       l.PID,
		IssuedAt:  written.ClusterTime(l.Time()),
		ExpiresAt: written.Deadline(l.staleSince(DefaultStaleTimeout)),
		Guard:     lockfact.GuardHost,
		OnStale:   lockfact.Keep,
	}, nil
}
