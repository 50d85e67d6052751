package namespace

import (
	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/storepb"
)

// EventClass is a kind of events that is kept apart from the others, so that many of one kind push out none of another.
type EventClass int

// The classes of events.
const (
	LockEvents           EventClass = iota // of locks
	RefusalEvents                          // calls and joins that were refused
	AdministrationEvents                   // acts of administrators; hosts and servers
	eventClasses
)

// classOf maps each event to its class. An event that is not in the table is one of administration.
func classOf(event string) EventClass {
	switch event {
	case eventAcquired, eventReleased, eventStale, eventStolen, eventRemoved, eventFileRemoved:
		return LockEvents
	case eventRefused, eventJoinRefused:
		return RefusalEvents
	}
	return AdministrationEvents
}

// events is the last ones, and how many there ever were. All have one order and one chain.
type events struct {
	kept    *digest.Map[uint64, *storepb.Event] // by number
	byClass [eventClasses]*btree.Set[uint64]    // numbers of those that are kept
	last    uint64
	counts  *digest.Map[string, uint64]

	refused map[Refusal]uint64 // see Refusals
}

// keptEvents is how many events of each class the state keeps.
const keptEvents = 10_000

func newEvents(d *digest.Digest) events {
	log := events{kept: digest.NewMap(d, eventValue), counts: digest.NewMap(d, countValue), refused: make(map[Refusal]uint64)}
	for class := range log.byClass {
		log.byClass[class] = new(btree.Set[uint64])
	}
	return log
}

// frozen leaves out the numbers by class, which are restored from the events.
func (log *events) frozen() events {
	return events{kept: log.kept.Copy(), last: log.last, counts: log.counts.Copy()}
}

// add numbers an event and keeps it, as the next of the chain.
func (log *events) add(now int64, e *storepb.Event) {
	if _, before, found := log.kept.Max(); found {
		e.Before = before.GetHash() // the last event of all is always kept
	}
	log.beginChain(now, e)
}

// beginChain is add, of the first event of a chain.
func (log *events) beginChain(now int64, e *storepb.Event) {
	log.last++
	e.Number, e.Time = log.last, now
	e.Hash = eventchain.Hash(e)
	log.keep(e)
	if of := log.byClass[classOf(e.Event)]; of.Len() > keptEvents {
		oldest, _ := of.PopMin()
		log.kept.Delete(oldest)
	}
	count, _ := log.counts.Get(e.Event)
	log.counts.Set(e.Event, count+1)
}

func (log *events) keep(e *storepb.Event) {
	log.kept.Set(e.GetNumber(), e)
	log.byClass[classOf(e.GetEvent())].Insert(e.GetNumber())
}

// wholeFrom returns the number of the first event from which on all of a chain are kept, or all since a chain that began anew.
func (log *events) wholeFrom() uint64 {
	from, before := log.last+1, true
	log.kept.Reverse(func(number uint64, e *storepb.Event) bool {
		if before && number+1 != from {
			return false
		}
		from, before = number, len(e.GetBefore()) > 0
		return true
	})
	return from
}
