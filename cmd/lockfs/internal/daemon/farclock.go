package daemon

import (
	"errors"
	"fmt"
	"time"

	"lockfs/raftstore/namespace"
)

// mostApart is how far a host's clock may be from the last time of a cluster that goes on there, before somebody has to say that it is right.
// That clock becomes the cluster's time, which never goes back: by one that is years ahead every lock with a time is stale at once.
const mostApart = 24 * time.Hour

// isBehind tells whether a clock shows a time that the cluster has long had; isAhead whether nothing was done for long, or the clock is
// wrong. The state of a cluster that never did anything is of no time.
func isBehind(now, last time.Time) bool { return now.Add(mostApart).Before(last) }
func isAhead(now, last time.Time) bool {
	return last.UnixNano() != 0 && now.After(last.Add(mostApart))
}

// farClock is what is to be known of a clock that is far from the last time of a cluster; empty: it is not.
func farClock(now, last time.Time) string {
	switch {
	case isBehind(now, last):
		return fmt.Sprintf("the clock of this host says %s, and the cluster was at %s already: set it right", onClock(now), onClock(last))
	case isAhead(now, last):
		return fmt.Sprintf("the clock of this host says %s, and the last that is known was at %s: if it is wrong, set it right, for by such a clock "+
			"every lock with a time is stale at once, and the cluster's time never goes back", onClock(now), onClock(last))
	}
	return ""
}

func onClock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// adviseForce adds to the error of a clock that is behind a state how to go on all the same.
func adviseForce(err error) error {
	if errors.Is(err, namespace.ErrClockBehind) {
		return fmt.Errorf("%w. If the clock is right, --force goes on above these numbers; older backups must not be restored any more then", err)
	}
	return err
}
