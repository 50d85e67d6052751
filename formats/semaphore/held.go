package semaphore

import (
	"context"
	"time"

	"lockfs/formats/internal/lockfile"
)

// Held is a lock that was taken. It is for one goroutine at a time. Beside its own it has the methods
//
//	Release(context.Context) error // removes the file; a LostError if it is not this lock any more
//	Check(context.Context) error   // nil: it is there; a LostError: it is not; any other error is no evidence
//	Token() string                 // the fencing token; empty anywhere but on a mount of lockfs
//	Path() string                  // absolute
//	Close()                        // forgets the lock, which stays
type Held struct {
	*lockfile.Held
	Lock Lock

	staleTimeout time.Duration // where no mount of lockfs says otherwise
}

// Renew writes the present time into the lock, so that a long job is not taken for stale. The token stays. It is a
// [LostError] if it is not this lock any more, and any other error is no evidence of that.
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

// StaleAfter is how long the lock lives without being renewed; 0: for ever. A mount of lockfs sets that by its rules; the error is for one that
// does not say it now.
func (h *Held) StaleAfter() (time.Duration, error) {
	if h.Token() == "" {
		return h.staleTimeout, nil
	}
	return lockfile.Lifetime(h.Path())
}
