package advisory

import (
	"github.com/tidwall/btree"

	"lockfs/raftstore/ids"
)

// service finds the requests a change allows to become locks, without visiting the others.
//
// Each waiting request is parked at one reason to wait: a byte of its range under a conflicting lock, or an
// earlier request that goes first. When locks end, only requests parked at their bytes are candidates, and
// none where another lock still covers the byte. When a request ends, only those parked behind it are
// candidates. A candidate is granted, or parked at another reason. Of requests with locks first, equal ones
// wait for the lock behind each other (forLock).
//
// A restored table parks its requests again. So reasons may differ between servers; granted requests do not.
// Therefore the rule that grants a request depends on locks and requests alone, and each change after which
// the rule may grant another request makes that request a candidate.
type service struct {
	freed      []*lock                // locks released since the last search for candidates
	candidates *btree.BTreeG[*waiter] // by file and position: nothing may be in their way
	parked     map[*waiter]*parking   // never ranged over
	atByte     *btree.BTreeG[*parking]
	ofOwner    *btree.BTreeG[*parking] // the same, by owner
	behind     *btree.BTreeG[*parking]
	ofHolders  *btree.BTreeG[*parking] // those behind a request of an owner with locks; see putAmid
	ofOthers   *btree.BTreeG[*parking] // those parked while their owner had no locks; see ownerHasMore
	forLocks   *btree.BTreeG[*parking] // those behind a request that waits for a lock in the way of both
}

// parking is a request and its reason to wait.
type parking struct {
	request  *waiter
	byte     uint64    // at which a lock is in the way
	behind   ids.Index // position of the earlier request; 0: it waits for a lock
	ofHolder bool
	forLock  bool // the lock for which the earlier request waits is in the way
}

func (p *parking) isForLock() bool { return p.behind == 0 || p.forLock }

func newService() service {
	options := btree.Options{NoLocks: true}
	return service{
		candidates: btree.NewBTreeGOptions(lessWaiter, options), parked: make(map[*waiter]*parking),
		atByte: btree.NewBTreeGOptions(lessAtByte, options), ofOwner: btree.NewBTreeGOptions(lessOfOwner, options), behind: btree.NewBTreeGOptions(lessBehind, options),
		ofOthers:  btree.NewBTreeGOptions(func(a, b *parking) bool { return lessByOwner(a.request, b.request) }, options),
		ofHolders: btree.NewBTreeGOptions(func(a, b *parking) bool { return lessWaiter(a.request, b.request) }, options),
		forLocks:  btree.NewBTreeGOptions(lessBehind, options),
	}
}

// lessAtByte orders by file, type and byte. Under a remaining shared lock, only exclusive requests keep
// waiting.
func lessAtByte(a, b *parking) bool {
	switch {
	case fileOf(&a.request.lock) != fileOf(&b.request.lock):
		return lessWaiter(a.request, b.request)
	case a.request.exclusive != b.request.exclusive:
		return b.request.exclusive
	case a.byte != b.byte:
		return a.byte < b.byte
	}
	return a.request.position < b.request.position
}

func lessOfOwner(a, b *parking) bool {
	switch one, another := ownerOf(&a.request.lock), ownerOf(&b.request.lock); {
	case fileOf(&a.request.lock) != fileOf(&b.request.lock):
		return lessWaiter(a.request, b.request)
	case one.session != another.session:
		return one.session < another.session
	case one.owner != another.owner:
		return one.owner < another.owner
	}
	return lessAtByte(a, b)
}

func lessBehind(a, b *parking) bool {
	switch {
	case fileOf(&a.request.lock) != fileOf(&b.request.lock):
		return lessWaiter(a.request, b.request)
	case a.behind != b.behind:
		return a.behind < b.behind
	}
	return a.request.position < b.request.position
}

// waitsForLock reports whether a parked request waits for a lock, and not for a request that goes first.
func (s *service) waitsForLock(w *waiter) bool {
	p, parked := s.parked[w]
	return parked && p.isForLock()
}

func (s *service) park(p *parking) {
	s.candidates.Delete(p.request)
	waitedForLock := s.waitsForLock(p.request)
	s.unpark(p.request)
	s.parked[p.request] = p
	if waitedForLock && !p.isForLock() {
		s.wakeBehind(s.forLocks, p.request) // no lock may be in their way any more
	}
	if p.behind == 0 {
		s.atByte.Set(p)
		s.ofOwner.Set(p)
		return
	}
	s.behind.Set(p)
	switch {
	case p.forLock:
		s.forLocks.Set(p)
	case p.ofHolder:
		s.ofHolders.Set(p)
	default:
		s.ofOthers.Set(p)
	}
}

// wakeOwner makes candidates of the parked requests of one owner and type, from one byte to before another.
func (s *service) wakeOwner(from *parking, before uint64) {
	var own []*waiter
	s.ofOwner.Ascend(from, func(p *parking) bool {
		is := fileOf(&p.request.lock) == fileOf(&from.request.lock) && p.request.sameOwner(&from.request.lock) &&
			p.request.exclusive == from.request.exclusive && p.byte < before
		if is {
			own = append(own, p.request)
		}
		return is
	})
	for _, w := range own {
		s.candidates.Set(w)
	}
}

func (s *service) unpark(w *waiter) {
	p, found := s.parked[w]
	if !found {
		return
	}
	delete(s.parked, w)
	s.atByte.Delete(p)
	s.ofOwner.Delete(p)
	s.behind.Delete(p)
	s.ofHolders.Delete(p)
	s.ofOthers.Delete(p)
	s.forLocks.Delete(p)
}

// forget removes a request: those behind it become candidates.
func (s *service) forget(w *waiter) {
	s.candidates.Delete(w)
	s.unpark(w)
	s.wakeBehind(s.behind, w)
}

func (s *service) wakeBehind(parked *btree.BTreeG[*parking], w *waiter) {
	first := &parking{request: &waiter{lock: w.lock}, behind: w.position}
	parked.Ascend(first, func(p *parking) bool {
		if fileOf(&p.request.lock) != fileOf(&w.lock) || p.behind != w.position {
			return false
		}
		s.candidates.Set(p.request)
		return true
	})
}
