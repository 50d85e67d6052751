package semaphore

import (
	"fmt"
	"strconv"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// Stale reports whether the lock was certainly taken more than timeout ago ("Stale Detection").
func (l *Lock) Stale(now time.Time, timeout time.Duration) bool {
	return now.After(l.staleSince(timeout))
}

// staleSince is when the lock becomes stale at the latest: its timestamp was cut to the second.
func (l *Lock) staleSince(timeout time.Duration) time.Time {
	return stamp.Latest(l.Time()).Add(timeout)
}

// Judge says whether the content is a stale lock at now, on the clock of the host that wrote it. The
// rule's StaleAfter replaces DefaultStaleTimeout. A content that is not a valid lock is held.
func Judge(content []byte, now time.Time, rule lockfact.Rule) lockfact.Verdict {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Verdict{State: lockfact.Held, Reason: "invalid semaphore lock: " + err.Error()}
	}
	timeout := staleTimeout(rule)
	v := lockfact.Verdict{
		State: lockfact.Held,
		Reason: fmt.Sprintf("taken %s, stale timeout %s",
			stamp.Ago(now.Sub(l.Time()).Truncate(time.Second)), stamp.Seconds(timeout)),
	}
	if l.Stale(now, timeout) {
		v.State = lockfact.Stale
	}
	return v
}

func staleTimeout(rule lockfact.Rule) time.Duration {
	if rule.StaleAfter != 0 {
		return rule.StaleAfter
	}
	return DefaultStaleTimeout
}

// FactsOf gives the facts of a content; the error is that of Parse. The holder is the pid, the only
// name that the format has.
func FactsOf(content []byte, written lockfact.Origin, rule lockfact.Rule) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	return rule.Override(lockfact.Facts{
		Format:    lockfact.Semaphore,
		Holder:    strconv.Itoa(l.PID),
		Host:      written.Host,
		PID:       l.PID,
		IssuedAt:  written.ClusterTime(l.Time()),
		ExpiresAt: written.Deadline(l.staleSince(staleTimeout(rule))),
		Guard:     lockfact.GuardHost,
		OnStale:   lockfact.Keep,
	}), nil
}
