package swarm

import (
	"fmt"
	"strings"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// Status is the state shown by check and list.
type Status string

// The two states of a lock.
const (
	Active  Status = "Active"
	Expired Status = "Expired"
)

// Status returns Expired if now is after each instant that expires_at can mean, and Active otherwise.
func (l *Lock) Status(now time.Time) Status {
	if !l.ExpiresAt.IsZero() && now.After(l.expiry()) {
		return Expired
	}
	return Active
}

// expiry returns the latest time at which the lock expires. An expires_at in whole seconds comes from an
// acquired_at cut to the second.
func (l *Lock) expiry() time.Time { return stamp.Latest(l.ExpiresAt) }

// OwnerError is the release of another worker's lock.
type OwnerError struct {
	TaskID, Worker string // of the release
	HeldTask, Held string // in the lock file
}

// Error names the holder.
func (e *OwnerError) Error() string {
	if e.TaskID != e.HeldTask {
		return fmt.Sprintf("the lock of %s is for task %s", e.TaskID, e.HeldTask)
	}
	return fmt.Sprintf("%s is locked by %s, not by %s", e.TaskID, e.Held, e.Worker)
}

// CheckOwner returns an [OwnerError] unless the lock names this task and worker ("Behavioral Specifications",
// 2).
func (l *Lock) CheckOwner(taskID, worker string) error {
	if l.TaskID == taskID && l.Worker == worker {
		return nil
	}
	return &OwnerError{TaskID: taskID, Worker: worker, HeldTask: l.TaskID, Held: l.Worker}
}

// ListLine returns the lock's line in list: "task-id: Active (worker: xxx, acquired: xxx)".
func (l *Lock) ListLine(now time.Time) string { return l.line(l.Status(now)) }

func (l *Lock) line(status Status) string {
	acquired := l.AcquiredAt.Format(time.RFC3339)
	return fmt.Sprintf("%s: %s (worker: %s, acquired: %s)", l.TaskID, status, l.Worker, acquired)
}

// NoLock returns the text of check for a task without a lock.
func NoLock(taskID string) string { return "No lock for " + taskID }

// Details returns the text of check for a lock: its status, and a line for each field.
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

// FactsOf returns the facts of a content; the error is that of Parse.
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
