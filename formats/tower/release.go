package tower

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"lockfs/formats/internal/stamp"
)

// Released is the audit event of a release (sections 8.1 and 8.2).
type Released struct {
	Event               string    `json:"event"`
	RequestID           string    `json:"request_id"`
	Timestamp           time.Time `json:"timestamp"`
	LockName            string    `json:"lock_name"`
	HeldDurationSeconds int64     `json:"held_duration_seconds"`
	Result              string    `json:"result"` // success or failure
	FailureStep         string    `json:"failure_step,omitempty"`
}

// Released returns the event for a lock removed after a successful execution.
func (l *Lock) Released(at time.Time) Released {
	return Released{
		Event:               "lock_released",
		RequestID:           l.RequestID,
		Timestamp:           stamp.Second(at),
		LockName:            l.LockName,
		HeldDurationSeconds: max(0, int64(at.Sub(l.CreatedAt)/time.Second)),
		Result:              "success",
	}
}

// ReleasedFailed returns the event for a lock removed after a failed execution. step is the failed step, or
// empty.
func (l *Lock) ReleasedFailed(step string, at time.Time) Released {
	event := l.Released(at)
	event.Result = "failure"
	event.FailureStep = step
	return event
}

// ReleaseFailed is the audit event of a failed removal of a lock file (section 8.3).
type ReleaseFailed struct {
	Event     string    `json:"event"`
	RequestID string    `json:"request_id"`
	Timestamp time.Time `json:"timestamp"`
	LockName  string    `json:"lock_name"`
	LockPath  string    `json:"lock_path"`
	Error     string    `json:"error"` // errno and message
	Action    string    `json:"action"`
}

// ReleaseFailed returns the event for a failed removal of the file at path.
func (l *Lock) ReleaseFailed(path string, err error, at time.Time) ReleaseFailed {
	return ReleaseFailed{
		Event:     "lock_release_failed",
		RequestID: l.RequestID,
		Timestamp: stamp.Second(at),
		LockName:  l.LockName,
		LockPath:  path,
		Error:     describe(err),
		Action:    "manual_cleanup_required",
	}
}

// HeartbeatFailed is the audit event of several failed heartbeats in a row. Section 5.4 names the event and
// leaves its fields open.
type HeartbeatFailed struct {
	Event               string    `json:"event"`
	RequestID           string    `json:"request_id"`
	Timestamp           time.Time `json:"timestamp"`
	LockName            string    `json:"lock_name"`
	LockPath            string    `json:"lock_path"`
	Error               string    `json:"error"` // errno and message
	ConsecutiveFailures int       `json:"consecutive_failures"`
}

// HeartbeatFailed returns the event for failed heartbeats of the lock at path; err is the last error.
func (l *Lock) HeartbeatFailed(path string, failures int, err error, at time.Time) HeartbeatFailed {
	return HeartbeatFailed{
		Event:               "heartbeat_failed",
		RequestID:           l.RequestID,
		Timestamp:           stamp.Second(at),
		LockName:            l.LockName,
		LockPath:            path,
		Error:               describe(err),
		ConsecutiveFailures: failures,
	}
}

var errnoNames = map[syscall.Errno]string{
	syscall.EACCES:  "EACCES",
	syscall.EBUSY:   "EBUSY",
	syscall.EDQUOT:  "EDQUOT",
	syscall.EIO:     "EIO",
	syscall.EISDIR:  "EISDIR",
	syscall.ENOENT:  "ENOENT",
	syscall.ENOSPC:  "ENOSPC",
	syscall.ENOTDIR: "ENOTDIR",
	syscall.EPERM:   "EPERM",
	syscall.EROFS:   "EROFS",
	syscall.ESTALE:  "ESTALE",

	syscall.ETIMEDOUT: "ETIMEDOUT",
}

// describe renders an error as in section 8.3: "EACCES: permission denied".
func describe(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	name, ok := errnoNames[errno]
	if !ok {
		name = fmt.Sprintf("errno %d", int(errno))
	}
	return name + ": " + errno.Error()
}
