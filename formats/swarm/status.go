package swarm

import (
	"fmt"
	"strings"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// Status is the word that check and list show for a lock.
type Status string

// The two states of a lock.
const (
	Active  Status = "Active"
	Expired Status = "Expired"
)

// Status is Expired when now is after any instant that expires_at can mean, and Active otherwise or if there is none.
func (l *Lock) Status(now time.Time) Status {
	if !l.ExpiresAt.IsZero() && now.After(l.expiry()) {
		return Expired
	}
	return Active
}

// expiry is when the lock expires at the latest: an expires_at in whole seconds is that of an acquired_at which was cut
// to the second.
func (l *Lock) expiry() time.Time { return stamp.Latest(l.ExpiresAt) }

// OwnerError is a release by a worker that does not have the lock.
type OwnerError struct {
	TaskID, Worker string // what was to be released, and for whom
	HeldTask, Held string // what the lock file says
}

// Error says who has the lock.
func (e *OwnerError) Error() string {
	if e.TaskID != e.HeldTask {
		return fmt.Sprintf("the lock of %s is for task %s", e.TaskID, e.HeldTask)
	}
	return fmt.Sprintf("%s is locked by %s, not by %s", e.TaskID, e.Held, e.Worker)
}

// CheckOwner allows a release only to the task and the worker that the lock names ("Behavioral
// Specifications", 2); anybody else gets an [OwnerError].
func (l *Lock) CheckOwner(taskID, worker string) error {
	if l.TaskID == taskID && l.Worker == worker {
		return nil
	}
	return &OwnerError{TaskID: taskID, Worker: worker, HeldTask: l.TaskID, Held: l.Worker}
}

// ListLine is the lock's line in list: "task-id: Active (worker: xxx, acquired: xxx)".
func (l *Lock) ListLine(now time.Time) string { return l.line(l.Status(now)) }

func (l *Lock) line(status Status) string {
	acquired := l.AcquiredAt.Format(time.RFC3339)
	return fmt.Sprintf("%s: %s (worker: %s, acquired: %s)", l.TaskID, status, l.Worker, acquired)
}

// NoLock is what check says when a task has no lock.
func NoLock(taskID string) string { return "No lock for " + taskID }

// Details is what check says of a lock: its status, and a line for each field that is set.
func (l *Lock) Details(now time.Time) string { return l.details(l.Status(now)) }

func (l *Lock) details(status Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", l.TaskID, status)
	fmt.Fprintf(&b, "  worker: %s\n", l.Worker)
	fmt.Fprintf(&b, "  acquired_at: %s\n", l.AcquiredAt.Format(time.RFC3339))
	if !l.ExpiresAt.IsZero() {
		fmt.Fprintf(&b, "  expires_at: %s\n", l.ExpiresAt.Format(time.RFC3339))
	}
	return b.String()
}

// FactsOf gives the facts of a content; the error is that of Parse.
func FactsOf(content []byte, written lockfact.Origin) (lockfact.Facts, error) {
	l, err := Parse(content)
	if err != nil {
		return lockfact.Facts{}, err
	}
	facts := lockfact.Facts{
		Format:   lockfact.Swarm,
		Holder:   lockfact.HolderName(l.Worker),
		Host:     written.Host,
		IssuedAt: written.ClusterTime(l.AcquiredAt),
		Guard:    lockfact.GuardAnyone,
		OnStale:  lockfact.Keep,
	}
	if !l.ExpiresAt.IsZero() {
		facts.ExpiresAt = written.Deadline(l.expiry())
	}
	return facts, nil
}
