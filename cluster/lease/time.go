package lease

import "time"

const (
	// Duration is how long a lease lasts at the leader.
	Duration = time.Second
	// Hold is how long the leader holds a renewal, counted from the last confirmation (package
	// documentation, "Time").
	Hold = 55 * Duration / 100
	// Slack is the least remaining time of a mount's lease at its renewal: for the quorum round and the
	// way to the mount. It is below the 140 ms left by Hold, so Hold mostly decides.
	Slack = Duration / 10
	// QuietPeriod is the time without a change before an inode is leased.
	QuietPeriod = Duration / 2
	// MinAge is the same for a mount with frequent reads ([Table.ReadsOften]). A lock under contention
	// changes faster, and would need a revocation for each change. A directory with many programs changes
	// more slowly.
	MinAge = QuietPeriod / 25
)

// minElapsed returns the least time on a mount's clock during a time on a leader's. Clocks differ in
// speed, and a slewed one by up to a twelfth.
func minElapsed(leaders time.Duration) time.Duration { return leaders - leaders/5 }
