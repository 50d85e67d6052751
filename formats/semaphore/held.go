package semaphore

import (
	"context"
	"time"

	"lockfs/formats/internal/lockfile"
)

// Held is an acquired lock, for one goroutine at a time. Further methods:
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it is there; a LostError: it is not; any other error is no evidence
//	Token() string                 // the fencing token; empty anywhere but on a mount of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held struct {
	*lockfile.Held
	Lock Lock

	staleTimeout time.Duration // on file systems other than lockfs
}

// Renew writes the current time into the lock, so it does not become stale during a long job. The token
// stays. A [LostError] means that the lock is gone; any other error proves nothing.
func (h *Held) Renew(ctx context.Context) error {
	renewed := h.Lock
	renewed.Timestamp = time.Now().Unix()
	content, err := renewed.Render()
	if err == nil {
		err = h.Rewrite(ctx, content)
	}
	if err == nil {
		h.Lock = renewed
	}
	return err
}

// StaleAfter returns the time from a renewal to stale; 0: never. On a lockfs mount its rules decide. The
// error means that the mount does not answer.
func (h *Held) StaleAfter() (time.Duration, error) {
	if h.Token() == "" {
		return h.staleTimeout, nil
	}
	return lockfile.Lifetime(h.Path())
}
