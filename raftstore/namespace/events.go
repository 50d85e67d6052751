package namespace

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/storepb"
)

// events is the last ones, and how many there ever were.
type events struct {
	kept   *digest.Map[uint64, *storepb.Event] // by number
	last   uint64
	counts *digest.Map[string, uint64]

	refused map[Refusal]uint64 // see Refusals
}

// keptEvents is how many events the state keeps.
const keptEvents = 10_000

func newEvents(d *digest.Digest) events {
	return events{kept: digest.NewMap(d, eventValue), counts: digest.NewMap(d, countValue), refused: make(map[Refusal]uint64)}
}

func (log *events) frozen() events {
	return events{kept: log.kept.Copy(), last: log.last, counts: log.counts.Copy()}
}

// add numbers an event and keeps it, as the next of the chain.
func (log *events) add(now int64, e *storepb.Event) {
	if _, before, found := log.kept.Max(); found {
		e.Before = before.GetHash()
	}
	log.beginChain(now, e)
}

// beginChain is add, of the first event of a chain.
func (log *events) beginChain(now int64, e *storepb.Event) {
	log.last++
	e.Number, e.Time = log.last, now
	e.Hash = eventchain.Hash(e)
	log.kept.Set(e.Number, e)
	if log.kept.Len() > keptEvents {
		log.kept.PopMin()
	}
	count, _ := log.counts.Get(e.Event)
	log.counts.Set(e.Event, count+1)
}
