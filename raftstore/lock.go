package raftstore

import (
	"fmt"
	"math"
	"strings"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// staleness says why a lock is stale. It is never modified.
type staleness struct {
	reason string
	since  int64
	byTime bool // else its process or its host is gone
}

// expiryBatch bounds how many locks become stale or go with one command. The leader sends another for the rest.
const expiryBatch = 200

// atOnce is when lockfs does what no time has to pass for.
const atOnce = math.MinInt64

// governed is what counts for a name: what its content says, under the rule for its path.
type governed struct {
	lockfact.Facts
	hostTimeout time.Duration
	pattern     string // of the rule; empty: there is none
}

func (ns *Namespace) govern(e *entry, in *inode) governed {
	g := governed{Facts: lockfact.NoneFacts(in.host.String())}
	if in.facts != nil {
		g.Facts = in.facts.Facts
	}
	if rule := ns.ruleFor(e); rule != nil {
		r := lockRule(rule)
		g.Facts, g.hostTimeout, g.pattern = r.Govern(g.Facts, in.mtime), r.HostTimeout, rule.GetPattern()
	}
	return g
}

// staleNow says why a lock is stale, also of one that is only waiting to be marked. Nil: it is not.
func (ns *Namespace) staleNow(e *entry, in *inode, g governed) *staleness {
	switch {
	case e.stale != nil:
		return e.stale
	case in.gone != nil && g.ByProcess():
		return in.gone
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

// judge works out when something is due with an entry, and takes back that it is stale if it is not any
// more. The entry must not be in a tree.
func (ns *Namespace) judge(e *entry, in *inode) {
	g := ns.govern(e, in)
	if s := e.stale; s != nil && (s.byTime && !g.StaleAt(ns.time) || !s.byTime && !g.ByProcess()) {
		e.stale = nil
	}
	e.due = ns.dueTime(e, in, g)
}

func (ns *Namespace) dueTime(e *entry, in *inode, g governed) int64 {
	switch {
	case e.stale != nil && g.OnStale == lockfact.Remove && !ns.isFull(in):
		return atOnce
	case e.stale != nil:
		return 0
	case in.gone != nil && g.ByProcess():
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
		if ns.judge(&judged, in); judged.stale != e.stale || judged.due != e.due {
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

// acquire gives a free name to an inode. A name that was made exclusively is a lock from the start; any
// other is one once its content says so.
func (ns *Namespace) acquire(by *storepb.Caller, e *entry, in *inode, exclusive bool) *entry {
	e.made, e.token, e.acquired, e.known = ns.index, ns.index, ns.time, in.facts
	e.announced = (exclusive || in.facts != nil) && !in.unlisted
	e = ns.putJudged(e, in)
	if e.announced {
		ns.emit(ns.lockEvent(eventAcquired, e, in, by))
	}
	return e
}

// succeed gives a name that is taken to another inode, which comes with what is known of it under the
// name it had. The token stays if the holder does, or if it is not known on one of the sides.
func (ns *Namespace) succeed(by *storepb.Caller, before, incoming *entry, old, in *inode) *entry {
	e := *before
	e.ino, e.made, e.stale = in.ino, ns.index, incoming.stale
	return ns.hold(by, &e, old, in, incoming.known)
}

// hold puts an entry whose content has become another one, with what is known of the holder now.
func (ns *Namespace) hold(by *storepb.Caller, e *entry, old, in *inode, known *facts) *entry {
	before, wasKnown := *e, e.known != nil
	stolen := wasKnown && known != nil && !e.known.sameHolder(known)
	if stolen {
		e.token, e.acquired = ns.index, ns.time
	}
	if known != nil {
		e.known = known
	}
	news := stolen || known != nil && !wasKnown
	e.announced = (e.announced || news) && !in.unlisted
	e = ns.putJudged(e, in)
	if in.unlisted {
		return e
	}
	if stolen {
		ns.emitStolen(&before, e, old, in, by)
	}
	if news {
		ns.emit(ns.lockEvent(eventAcquired, e, in, by))
	}
	return e
}

// contentChanged is for every name of an inode whose content was replaced.
func (ns *Namespace) contentChanged(by *storepb.Caller, old, in *inode) {
	for _, e := range ns.namesOf(in.ino) {
		changed := *e
		changed.stale = nil
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
		} else if why := ns.staleNow(e, in, ns.govern(e, in)); why != nil {
			ns.markStale(e, why)
		}
	}
}

// markStale notes that a lock is stale, and removes it if it is one of those that lockfs removes.
func (ns *Namespace) markStale(e *entry, why *staleness) {
	in, found := ns.inodes.Get(e.ino)
	if !found || e.stale != nil {
		return
	}
	marked := *e
	marked.stale = why
	marked.due = ns.dueTime(&marked, in, ns.govern(e, in))
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

// loseProcesses notes that processes are gone, and marks what they hold. Names that are no locks of theirs
// by the present rules may be later.
func (ns *Namespace) loseProcesses(lost []held, reason string) {
	why := &staleness{reason: reason, since: ns.time}
	for _, h := range lost {
		in, found := ns.inodes.Get(h.ino)
		if !found {
			continue
		}
		bereft := *in
		bereft.gone = why
		ns.putInode(&bereft)
		for _, e := range ns.namesOf(h.ino) {
			if ns.govern(e, in).ByProcess() {
				ns.markStale(e, why)
			}
		}
	}
}

// processGone is what the mount of a host has seen.
func (ns *Namespace) processGone(session uint64, op *storepb.ProcessGone) *storepb.Result {
	s, found := ns.sessions.Get(session)
	if !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	for _, p := range op.GetProcesses() {
		if p != nil && p.GetBootId() == s.bootID {
			ns.loseProcesses(ns.heldOn(s.host, processFrom(p)), fmt.Sprintf("its process %d on %s is gone", p.GetPid(), s.host))
		}
	}
	return ok()
}

// Due tells whether a Tick at that time would change anything.
func (ns *Namespace) Due(now int64) bool {
	next := ns.NextDue()
	due := next <= now && next < math.MaxInt64
	ns.eachImpatient(now, func(*entry, string) { due = true })
	return due
}

// NextDue is the time from which on a Tick changes something, apart from the patience with silent hosts (AwaitsHosts);
// math.MaxInt64 if nothing is under way.
func (ns *Namespace) NextDue() int64 {
	next := int64(math.MaxInt64)
	if e, found := ns.byDue.Min(); found && e.due < math.MaxInt64 {
		next = e.due + 1
	}
	if a, found := ns.delayed.Min(); found {
		next = min(next, a.until)
	}
	if w, found := ns.interrupted.Min(); found {
		next = min(next, w.interrupted+int64(interruptPatience))
	}
	return next
}

// AwaitsHosts tells whether patience with some silent host may come to an end.
func (ns *Namespace) AwaitsHosts() bool {
	if !ns.hasHostTimeouts() {
		return false
	}
	silent := false
	ns.hosts.Scan(func(_ string, h *host) bool {
		silent = h.sessions == 0
		return !silent
	})
	return silent
}

// tick ends the patience with silent hosts; the rest happens with every command.
func (ns *Namespace) tick() *storepb.Result {
	type lost struct {
		e      *entry
		reason string
	}
	var found []lost
	ns.eachImpatient(ns.time, func(e *entry, reason string) { found = append(found, lost{e, reason}) })
	for _, l := range found {
		ns.markStale(l.e, &staleness{reason: l.reason, since: ns.time})
	}
	return ok()
}

// eachImpatient visits the locks whose rule does not wait any longer for their silent host.
func (ns *Namespace) eachImpatient(now int64, visit func(e *entry, reason string)) {
	if !ns.hasHostTimeouts() {
		return
	}
	ns.hosts.Scan(func(name string, h *host) bool {
		if h.sessions > 0 {
			return true
		}
		for _, held := range ns.heldOn(name, nil) {
			in, found := ns.inodes.Get(held.ino)
			if !found {
				continue
			}
			for _, e := range ns.namesOf(in.ino) {
				g := ns.govern(e, in)
				if e.stale == nil && g.ByProcess() && g.hostTimeout > 0 && now-h.since > int64(g.hostTimeout) {
					visit(e, fmt.Sprintf("its host %s has been silent for more than %v (rule %s)", name, g.hostTimeout, g.pattern))
				}
			}
		}
		return true
	})
}

func timestamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
