package lockfile

import (
	"context"
	"time"
)

const (
	// relook is how often a lock is looked at that should tell by itself when it changes. On a mount of lockfs not
	// everything done on another host does: that the lock is written to, or renamed, or may be taken for stale
	// though it stays; nor is a removal told to processes that the mount cannot see, or when thousands come at once.
	relook = 10 * time.Second
	// soon is for how long it is looked at more often: a mount of lockfs collects what was removed on other hosts for a
	// second, and many locks are held for less.
	soon = time.Second
	// briefest is how soon after the moment in which a lock should be stale it is looked at when it is not yet.
	briefest = 20 * time.Millisecond
)

// Wait calls try, and again each time that the lock file at path may have changed, until it answers that this is
// enough, or ctx ends, whose error is the result then. try also answers when the lock goes stale, if that is known.
//
// It does not poll where the system tells of changes: on Linux, in local file systems and on mounts of lockfs, by
// inotify(7) on the file. There try is called all the same some times in the first second, after pauses that double, and
// then every ten seconds, for what is not told. Elsewhere, and for a file that may not be read, it is called at each
// interval.
func Wait(ctx context.Context, path string, interval time.Duration, try func() (staleAt time.Time, again bool)) error {
	if _, again := try(); !again {
		return nil
	}
	for since := time.Now(); ; {
		w := watch(path)
		staleAt, again := try()
		if !again {
			w.close()
			return nil
		}
		atMost := interval
		if w.current() {
			atMost = untilLook(since, staleAt, time.Now())
		}
		changed, err := w.wait(ctx, atMost)
		w.close()
		if err != nil {
			return err
		}
		if changed {
			since = time.Now()
		}
	}
}

// untilLook is how long to wait for a lock that has not changed since, unless something tells that it has. It is looked
// at when it goes stale. When that is past already, as clocks are not the same and who judges takes its time, the
// pauses begin small and double.
func untilLook(since, staleAt, now time.Time) time.Duration {
	next := relook
	if waited := now.Sub(since); waited < soon {
		next = max(briefest, waited)
	}
	if !staleAt.IsZero() {
		next = min(next, max(briefest, staleAt.Sub(now).Abs()))
	}
	return next
}
