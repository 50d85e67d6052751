package formats

import "time"

// Free is the state of a name that has no lock.
const Free State = "free"

// Invalid is the state of a file that is not a valid lock of the format that was asked for. It counts as held.
const Invalid State = "invalid"

// Status is what is known of a lock at a moment.
type Status struct {
	State    State  // Free, Held, Stale, Unreachable or Invalid
	Format   Format // what was found; None if nothing was
	Holder   string // as the format names it, through [lockfact.HolderName]
	Host     string // of the holder; empty if it is not known
	PID      int    // 0 if it is not known
	Acquired time.Time
	Expires  time.Time // when it is stale unless it is renewed; zero: not by time
	Token    uint64    // on a mount of lockfs
	Empty    bool      // it is a file in which nothing stands
	Reason   string    // why the lock is in this state; empty for one that is free
}
