package daemon

import (
	"errors"
	"fmt"
	"time"

	"lockfs/raftstore/namespace"
)

// mostApart is the maximum difference between this host's clock and the last cluster time for a recovery or
// restore without --force. The clock becomes cluster time, which never goes back. A clock years ahead makes
// every lock with a time stale at once.
const mostApart = 24 * time.Hour

// isBehind reports whether a clock is behind cluster time. isAhead reports a long pause or a wrong clock. A
// cluster without any operation has no time.
func isBehind(now, last time.Time) bool { return now.Add(mostApart).Before(last) }
func isAhead(now, last time.Time) bool {
	return last.UnixNano() != 0 && now.After(last.Add(mostApart))
}

// skewWarning returns a warning for a clock far from the last cluster time, or "".
func skewWarning(now, last time.Time) string {
	switch {
	case isBehind(now, last):
		return fmt.Sprintf("the clock of this host says %s, but cluster time has reached %s: set the clock", onClock(now), onClock(last))
	case isAhead(now, last):
		return fmt.Sprintf("the clock of this host says %s, but the last known cluster time is %s: if the clock is wrong, set it first, because a clock ahead "+
			"makes every lock with a time stale at once, and cluster time never goes back", onClock(now), onClock(last))
	}
	return ""
}

func onClock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// adviseForce adds the way around to the error of a clock behind the state.
func adviseForce(err error) error {
	if errors.Is(err, namespace.ErrClockBehind) {
		return fmt.Errorf("%w. If the clock is right, --force continues above these numbers; never restore an older backup afterwards", err)
	}
	return err
}
