package swarm

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
)

// The directory of locks ("Path Configuration") is "locks" below the directory in the environment variable,
// or below DefaultStateDir.
const (
	StateDirVariable = "SWARM_STATE_DIR"
	DefaultStateDir  = "/tmp/ai_swarm"
	LockDir          = "locks"
	FileMode         = 0o644
)

const (
	suffix    = ".lock"
	maxTaskID = 255 - len(suffix)
)

// Lock is the content of a lock file ("Lock File Format").
type Lock struct {
	TaskID     string
	Worker     string
	AcquiredAt time.Time
	ExpiresAt  time.Time // zero: never
}

// wire is a Lock as JSON. All four members are always written; an empty expires_at means "never".
type wire struct {
	TaskID     string `json:"task_id"`
	Worker     string `json:"worker"`
	AcquiredAt string `json:"acquired_at"`
	ExpiresAt  string `json:"expires_at"`
}

// New returns a lock acquired now, in whole seconds as in "Lock File Format". Its expires_at is acquired_at
// plus ttl, rounded up to the second. A ttl of 0 means no expiry.
func New(taskID, worker string, ttl time.Duration, now time.Time) (*Lock, error) {
	if ttl < 0 {
		return nil, &lockfact.FieldError{Field: "ttl_seconds", Problem: "must not be negative"}
	}
	l := &Lock{TaskID: taskID, Worker: worker, AcquiredAt: stamp.Second(now)}
	if ttl > 0 {
		l.ExpiresAt = l.AcquiredAt.Add(ttl.Truncate(time.Second))
		if ttl%time.Second != 0 {
			l.ExpiresAt = l.ExpiresAt.Add(time.Second)
		}
	}
	return l, l.Validate()
}

// Parse reads and validates a lock file and ignores other members. A missing, null or empty expires_at means
// "never". If one field is at fault, the error is a [lockfact.FieldError].
func Parse(content []byte) (*Lock, error) {
	object, err := strictjson.Parse(content)
	if err != nil {
		return nil, err
	}
	f := object.Fields()
	l := &Lock{
		TaskID:     f.String("task_id"),
		Worker:     f.String("worker"),
		AcquiredAt: f.Time("acquired_at"),
	}
	expires := f.OptionalString("expires_at")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if expires != "" {
		if l.ExpiresAt, err = stamp.Parse(expires); err != nil {
			return nil, &lockfact.FieldError{Field: "expires_at", Problem: err.Error()}
		}
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l, nil
}

// Validate returns a [lockfact.FieldError] for the first invalid field.
func (l *Lock) Validate() error {
	if err := ValidateTaskID(l.TaskID); err != nil {
		return err
	}
	if err := ValidateWorker(l.Worker); err != nil {
		return err
	}
	if l.AcquiredAt.IsZero() {
		return &lockfact.FieldError{Field: "acquired_at", Problem: "is required"}
	}
	return nil
}

// ValidateTaskID reports an error if a task id cannot be a file name. It must be 1 to 250 bytes of printable
// text without slashes and must not begin with a dot. The specification sets no form.
func ValidateTaskID(id string) error {
	problem := ""
	switch {
	case id == "":
		problem = "is required"
	case len(id) > maxTaskID:
		problem = fmt.Sprintf("has %d bytes, at most %d are allowed", len(id), maxTaskID)
	case id[0] == '.':
		problem = "must not begin with a dot"
	case strings.ContainsAny(id, `/\`) || !printable(id):
		problem = "must be printable and have no slashes"
	default:
		return nil
	}
	return &lockfact.FieldError{Field: "task_id", Problem: problem}
}

// ValidateWorker reports an error if a worker's name is empty or not one printable line.
func ValidateWorker(worker string) error {
	switch {
	case worker == "":
		return &lockfact.FieldError{Field: "worker", Problem: "is required"}
	case !printable(worker):
		return &lockfact.FieldError{Field: "worker", Problem: "must be printable"}
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// FileName is the name of a task's file in the lock directory.
func FileName(taskID string) string { return taskID + suffix }

// Render returns the text of a valid lock with all four members, in the layout of "Lock File Format".
func (l *Lock) Render() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	w := wire{TaskID: l.TaskID, Worker: l.Worker, AcquiredAt: l.AcquiredAt.Format(time.RFC3339Nano)}
	if !l.ExpiresAt.IsZero() {
		w.ExpiresAt = l.ExpiresAt.Format(time.RFC3339Nano)
	}
	return strictjson.Render(w)
}
