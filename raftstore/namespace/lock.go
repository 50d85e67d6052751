package namespace

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// staleness says why a lock is stale. It is never modified.
type staleness struct {
	reason  string
	since   int64
	byTime  bool // else its process or its host is gone
	ofMaker bool // the process is the one that made the name
}

// expiryBatch bounds how many locks become stale or go with one command. The leader sends another for the rest.
const expiryBatch = 200

// atOnce is when lockfs does what no time has to pass for.
const atOnce = math.MinInt64

// governed is what counts for a name: what its content says, under the rule for its path.
type governed struct {
	lockfact.Facts
	hostTimeout time.Duration
	pattern     string       // of the rule; empty: there is none
	byCreator   bool         // the process that made the name is the holder, whatever the content says
	process     *process     // the holder, if the lock lives as long as it does and it was identified
	machine     sharedString // that Host is the name of; empty: it is not known
	gone        *staleness   // how the process is known to be gone; nil: it is not
}

// ByProcess reports whether the lock lives as long as a process.
func (g governed) ByProcess() bool { return g.byCreator || g.Facts.ByProcess() }

func (ns *Namespace) govern(e *entry, in *inode) governed {
	g := governed{Facts: lockfact.NoneFacts(in.host.String())}
	if in.kernelLocked {
		return g
	}
	if in.facts != nil {
		g.Facts, g.process, g.machine, g.gone = in.facts.Facts, in.facts.process, in.facts.machine, in.gone
	}
	if g.Format == lockfact.PID && !e.exclusive {
		g.OnStale = lockfact.Keep // somebody may have been given the file's name to write his number to
	}
	rule := ns.ruleFor(e)
	if rule == nil {
		return g
	}
	r := lockRule(rule)
	g.Facts, g.hostTimeout, g.pattern = r.Govern(g.Facts, in.mtime), r.HostTimeout, rule.GetPattern()
	if g.Format == lockfact.None {
		g.process, g.gone = nil, nil
	}
	if r.Holder == lockfact.HolderCreator && e.maker != nil {
		g.Facts, g.byCreator = e.maker.govern(g.Facts, r), true
		g.process, g.machine, g.gone = e.maker.process, e.maker.machine, e.maker.gone
	}
	return g
}

// staleNow says why a lock is stale, also of one that is only waiting to be marked. Nil: it is not.
func (ns *Namespace) staleNow(e *entry, g governed) *staleness {
	switch {
	case e.stale != nil:
		return e.stale
	case g.gone != nil && g.ByProcess():
		return g.gone
	case g.StaleAt(ns.time):
		reason := fmt.Sprintf("its time was over at %s", timestamp(g.ExpiresAt))
		return &staleness{reason: reason, since: ns.time, byTime: true}
	}
	return nil
}

// namesOf lists the names of an inode.
func (ns *Namespace) namesOf(ino uint64) []*entry {
	var names []*entry
	ns.byIno.Ascend(&entry{ino: ino}, func(e *entry) bool {
		if e.ino != ino {
			return false
		}
		names = append(names, e)
		return true
	})
	return names
}

// nameOf answers the first name of an inode. A directory has no other; the root has none.
func (ns *Namespace) nameOf(ino uint64) (first *entry) {
	ns.byIno.Ascend(&entry{ino: ino}, func(e *entry) bool {
		if e.ino == ino {
			first = e
		}
		return false
	})
	return first
}

// path is a name's path from the root, without a leading slash.
func (ns *Namespace) path(e *entry) string {
	elements := []string{e.name}
	for e.parent != RootIno {
		if e = ns.nameOf(e.parent); e == nil {
			break // a directory that was removed has no entries, so there is none that could be asked about
		}
		elements = append([]string{e.name}, elements...)
	}
	return strings.Join(elements, "/")
}

// judge works out whether an entry is a lock and when something is due with it, and takes back that it is stale if it is not
// any more. The entry must not be in a tree.
func (ns *Namespace) judge(e *entry, in *inode) {
	g := ns.govern(e, in)
	if s := e.stale; s != nil && (s.byTime && !g.StaleAt(ns.time) || !s.byTime && (!g.ByProcess() || s.ofMaker != g.byCreator)) {
		e.stale = nil
	}
	e.due = ns.dueTime(e, in, g)
	e.lock = !in.isDir() && ns.groundOf(e, in) != isData
}

func (ns *Namespace) dueTime(e *entry, in *inode, g governed) int64 {
	switch {
	case e.stale != nil && g.OnStale == lockfact.Remove && !ns.isFull(in):
		return atOnce
	case e.stale != nil:
		return 0
	case g.gone != nil && g.ByProcess():
		return atOnce
	}
	return g.ExpiresAt
}

func (ns *Namespace) putJudged(e *entry, in *inode) *entry {
	judged := *e
	ns.judge(&judged, in)
	ns.putEntry(&judged)
	return &judged
}

// judgeAgain is for names whose inode has other times, or whose path has other rules. Most judgements
// stay as they are, and cost no more than to come to them.
func (ns *Namespace) judgeAgain(names ...*entry) {
	for _, e := range names {
		in, found := ns.inodes.Get(e.ino)
		if !found {
			continue
		}
		judged := *e
		if ns.judge(&judged, in); judged.stale != e.stale || judged.due != e.due || judged.lock != e.lock {
			ns.putEntry(&judged)
		}
	}
}

// judgeBelow judges every name in and below a directory that was moved.
func (ns *Namespace) judgeBelow(dir uint64) {
	if ns.rules.Len() == 0 {
		return
	}
	for _, e := range ns.entriesOf(dir) {
		ns.judgeAgain(e)
		if in, found := ns.inodes.Get(e.ino); found && in.isDir() {
			ns.judgeBelow(in.ino)
		}
	}
}

func (ns *Namespace) entriesOf(dir uint64) []*entry {
	var entries []*entry
	ns.byName.Ascend(&entry{parent: dir}, func(e *entry) bool {
		if e.parent != dir {
			return false
		}
		entries = append(entries, e)
		return true
	})
	return entries
}

// acquire gives a free name to an inode.
func (ns *Namespace) acquire(by *storepb.Caller, e *entry, in *inode, how acquisition) *entry {
	e.made, e.token, e.acquired, e.known = ns.index, ns.index, ns.time, in.facts
	e.exclusive = how.exclusive
	e = ns.putJudged(e, in)
	return ns.announceSoon(by, e, in, how.done)
}

// acquisition says how a name came to be.
type acquisition struct {
	exclusive bool // it was free for sure
	done      bool // as a rule nothing follows that belongs to the same acquisition
}

// succeed gives a name that is taken to another inode, which comes with what is known of it under the
// name it had. The token stays if the holder does, or if it is not known on one of the sides. The name was not made
// exclusively then, and has another maker.
func (ns *Namespace) succeed(by *storepb.Caller, before, incoming *entry, old, in *inode, m *maker) *entry {
	e := *before
	e.ino, e.made, e.stale, e.maker, e.exclusive = in.ino, ns.index, incoming.stale.withoutMaker(), m, false
	if says := asCounted(old, in.content, in.facts); says != in.facts && in.nlink == 1 {
		counted := *in
		counted.facts, counted.gone = says, nil
		ns.putInode(&counted)
		return ns.hold(by, &e, old, &counted, nil)
	}
	return ns.hold(by, &e, old, in, incoming.known)
}

// hold puts an entry whose content has become another one, with what is known of the holder now.
func (ns *Namespace) hold(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	if in.unlisted && (e.announced || e.pending != nil) {
		return ns.lapse(by, e, old, in, known)
	}
	before, wasKnown := *e, e.known != nil
	stolen := wasKnown && known != nil && !e.known.sameHolder(known) && (in.unlisted || ns.groundOf(e, in) != isData)
	if stolen {
		e.token, e.acquired = ns.index, ns.time
	}
	if known != nil {
		e.known = known
	}
	if known == nil && wasKnown && !mayBegin(e.known.Format, in.content) {
		if !ns.goesOn(e, old, in) {
			return ns.lapse(by, e, old, in, nil)
		}
		e.known = nil
	}
	if !stolen || in.unlisted {
		return ns.announceSoon(by, ns.putJudged(e, in), in, false)
	}
	told := ns.announceBefore(&before, old)
	e.pending, e.announced = nil, false
	e = ns.putJudged(e, in)
	if told.announced {
		ns.emitStolen(told, e, old, in, by)
	}
	return ns.announceSoon(by, e, in, told.announced)
}

// goesOn tells whether a holder has written more to its lock, as after a pid the name of its host.
func (ns *Namespace) goesOn(e *entry, old, in *inode) bool {
	return old.ino == in.ino && len(old.content) > 0 && bytes.HasPrefix(in.content, old.content) && ns.groundOf(e, in) != isData
}

// lapse puts an entry whose content was a lock's and is another's now, or data, or lockfs's own.
func (ns *Namespace) lapse(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	before := *e
	ns.emitReleased(&before, old, by, "its content was replaced", "")
	e.known, e.token, e.acquired = known, ns.index, ns.time
	e.pending, e.announced = nil, false
	return ns.announceSoon(by, ns.putJudged(e, in), in, false)
}

// contentChanged is for every name of an inode whose content was replaced.
func (ns *Namespace) contentChanged(by *storepb.Caller, old, in *inode) {
	for _, e := range ns.namesOf(in.ino) {
		changed := *e
		changed.stale = nil
		if in.facts == nil && e.known != nil && ns.staleNow(e, ns.govern(e, old)) != nil {
			changed.known = e.known.forAnyone()
		}
		ns.hold(by, &changed, old, in, in.facts)
	}
}

// expireLocks does what is due. It runs with every command, like dropExpiredOrphans.
func (ns *Namespace) expireLocks() {
	for range expiryBatch {
		e, found := ns.byDue.Min()
		if !found || e.due >= ns.time {
			return
		}
		in, found := ns.inodes.Get(e.ino)
		if !found {
			return
		}
		if e.stale != nil {
			ns.removeStale(e, in)
		} else if why := ns.staleNow(e, ns.govern(e, in)); why != nil {
			ns.markStale(e, why)
		}
	}
}

// markStale notes that a lock is stale, and removes it if it is one of those that lockfs removes.
// Nothing happens if that name is gone, or another file's, or was marked by what was done since it was found.
func (ns *Namespace) markStale(e *entry, why *staleness) {
	now, found := ns.byName.Get(e)
	if !found || now.ino != e.ino || now.stale != nil {
		return
	}
	in, found := ns.inodes.Get(now.ino)
	if !found {
		return
	}
	marked := *ns.announceBefore(now, in)
	marked.stale = why
	marked.due = ns.dueTime(&marked, in, ns.govern(now, in))
	ns.putEntry(&marked)
	if !in.unlisted {
		event := ns.lockEvent(eventStale, &marked, in, nil)
		event.Reason = why.reason
		ns.emit(event)
	}
	if marked.due != 0 {
		ns.removeStale(&marked, in)
	}
}

func (ns *Namespace) removeStale(e *entry, in *inode) {
	if !in.unlisted {
		event := ns.lockEvent(eventRemoved, e, in, nil)
		event.Reason = e.stale.reason
		ns.emit(event)
	}
	ns.removeEntry(0, e, in)
}

func timestamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
