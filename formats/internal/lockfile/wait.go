package lockfile

import (
	"context"
	"time"
)

const (
	// relook is the interval of checks where inotify reports changes. A lockfs mount does not report every
	// change by another host: it omits writes, renames, and locks that become stale but stay. It also omits
	// removals for invisible processes, and if thousands come at once.
	relook = 10 * time.Second
	// soon is the time of more frequent checks. A lockfs mount collects removals on other hosts for one
	// second, and many locks are held for less.
	soon = time.Second
	// briefest is the first pause after the time at which a lock should have become stale.
	briefest = 20 * time.Millisecond
)

// Wait calls try until it returns false for again or ctx ends; then the error comes from ctx. It calls try
// each time the lock file at path may have changed. try also returns the time at which the lock becomes
// stale, if known.
//
// On local file systems of Linux and on lockfs mounts, Wait uses inotify(7) on the file instead of polling.
// There it also calls try a few times in the first second, with pauses that double, and then every ten
// seconds, for unreported changes. On other file systems, and for an unreadable file, it calls try once per
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

// untilLook returns the pause before the next check of an unchanged lock. The check comes when the lock
// becomes stale. If that time is past, because clocks differ or the mount has not decided yet, pauses begin
// small and double.
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
