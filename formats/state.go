package formats

import "time"

// Free is the state of a name without a lock.
const Free State = "free"

// Invalid is the state of a file that is not a valid lock of the expected format. It counts as held.
const Invalid State = "invalid"

// Status describes a lock at a moment.
type Status struct {
	State    State  // Free, Held, Stale, Unreachable or Invalid
	Format   Format // of the content; None if unknown
	Holder   string // from the content, through [lockfact.HolderName]
	Host     string // of the holder; empty if unknown
	PID      int    // 0 if unknown
	Acquired time.Time
	Expires  time.Time // when it is stale unless renewed; zero: not by time
	Token    uint64    // on a mount of lockfs
	Empty    bool      // the file is empty
	Reason   string    // of the state; empty if free
}
