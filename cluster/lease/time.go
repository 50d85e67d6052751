package lease

import "time"

const (
	// Duration is for how long a lease lasts, at the leader.
	Duration = time.Second
	// Margin is what a mount stops short of that, for clocks that do not run at the same speed: one that is slewed may be off by a twelfth.
	Margin = Duration / 5
	// Renewal is how often a mount has its lease extended, for as long as it has a use for it.
	Renewal = 3 * Duration / 10
	// Quiet is for how long an inode must not have changed before it is leased.
	Quiet = Duration / 2
)
