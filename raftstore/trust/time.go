package trust

import "lockfs/raftstore/ids"

// Begin has what follows be done by the command with that index, at that time (nanoseconds since the Unix epoch). Tokens whose time is over go.
func (t *Table) Begin(index ids.Index, now int64) {
	t.index, t.now = index, now
	if t.nextExpiry <= now {
		t.dropExpired()
	}
}

// NextDue is the time from which on Begin changes something; math.MaxInt64 if nothing is under way.
func (t *Table) NextDue() int64 { return t.nextExpiry }
