package trust

import (
	"lockfs/raftstore/ids"
)

// Begin starts the command with this index and time (nanoseconds since the Unix epoch), and deletes expired
// tokens.
func (t *Table) Begin(index ids.Index, now int64) {
	t.index, t.now = index, now
	if t.nextExpiry <= now {
		t.dropExpired()
	}
}

// NextDue returns the time from which Begin changes something; math.MaxInt64: never.
func (t *Table) NextDue() int64 { return t.nextExpiry }
