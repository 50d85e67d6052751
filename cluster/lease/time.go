package lease

import "time"

const (
	// Duration is for how long a lease lasts, at the leader.
	Duration = time.Second
	// Hold is how long after what backs a mount's lease the leader backs it again, at the latest, if the mount has asked for that (package
	// documentation, "Time").
	Hold = 55 * Duration / 100
	// Slack is what a mount has left of its lease at the least, by its own word, when the leader backs it again: for the confirmation, the way to
	// the mount, and a slow moment of either. It is less than what Hold leaves (140 ms), so that this is mostly what counts.
	Slack = Duration / 10
	// QuietPeriod is for how long an inode must not have changed before it is leased.
	QuietPeriod = Duration / 2
	// MinAge is that for a mount which has asked about it several times since it changed ([Table.ReadsOften]). Where others try to take a lock
	// without a pause, that is held for less, it changes more often: there each lease would have to be taken back. Directories in which many programs
	// work change more seldom.
	MinAge = QuietPeriod / 25
)

// minElapsed is what has passed on a mount's clock at the least while so long has on a leader's: clocks do not run at the same speed, and one
// that is slewed may be off by a twelfth.
func minElapsed(leaders time.Duration) time.Duration { return leaders - leaders/5 }
