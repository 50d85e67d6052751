package namespace

import (
	"github.com/tidwall/btree"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/storepb"
)

// EventClass is a class of events with a limit of its own, so events of one class push out none of another.
type EventClass int

// The classes of events.
const (
	LockEvents           EventClass = iota
	RefusalEvents                   // refused calls and joins
	AdministrationEvents            // acts of administrators; hosts and servers
	eventClasses
)

// classOf returns the class of an event. Events outside the table are of administration.
func classOf(event string) EventClass {
	switch event {
	case eventAcquired, eventReleased, eventStale, eventStolen, eventRemoved, eventFileRemoved:
		return LockEvents
	case eventRefused, eventJoinRefused:
		return RefusalEvents
	}
	return AdministrationEvents
}

// events holds the last events and counts all. All classes have one order and one chain.
type events struct {
	kept    *digest.Map[uint64, *storepb.Event] // by number
	byClass [eventClasses]*btree.Set[uint64]    // numbers of the kept events
	last    uint64
	counts  *digest.Map[string, uint64]

	refused map[Refusal]uint64 // see Refusals
}

// keptEvents is the number of kept events of each class.
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

func (log *events) add(now int64, e *storepb.Event) {
	if _, before, found := log.kept.Max(); found {
		e.Before = before.GetHash() // the last event is always kept
	}
	log.beginChain(now, e)
}

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

// wholeFrom returns the number of the first event after which no event of the chain is missing. A chain may
// have begun anew.
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
