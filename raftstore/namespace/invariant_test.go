package namespace

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/btree"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// requireConsistent checks what must hold inside every namespace.
func requireConsistent(t require.TestingT, ns *Namespace) {
	names, subdirs, cookies := map[ids.Inode]uint32{}, map[ids.Inode]uint32{}, map[[2]uint64]bool{}
	require.Equal(t, ns.tree.byName.Len(), ns.tree.byCookie.Len(), "as many entries by name as by cookie")
	ns.tree.byName.Scan(func(e *entry) bool {
		same, found := ns.tree.byCookie.Get(e)
		require.True(t, found && same == e, "entry %q is found by its cookie", e.name)
		require.True(t, e.cookie > cookieParent && e.cookie < ns.tree.nextCookie, "cookie %d of %q", e.cookie, e.name)
		require.False(t, cookies[[2]uint64{uint64(e.parent), e.cookie}], "cookie of %q is its own", e.name)
		cookies[[2]uint64{uint64(e.parent), e.cookie}] = true
		dir, found := ns.tree.inode(e.parent)
		require.True(t, found && dir.isDir() && dir.nlink > 0, "entry %q is in a directory", e.name)
		in, found := ns.tree.inode(e.ino)
		require.True(t, found, "entry %q has an inode", e.name)
		names[e.ino]++
		if in.isDir() {
			require.Equal(t, e.parent, in.parent, "directory %q knows its parent", e.name)
			subdirs[e.parent]++
		}
		return true
	})
	ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		require.True(t, ino == in.ino && ino < ns.tree.nextIno, "number of inode %d", ino)
		_, orphaned := ns.tree.orphans.byIno.Get(ino)
		switch {
		case orphaned:
			require.Zero(t, in.nlink, "inode %d has no name", ino)
			require.Zero(t, names[ino])
		case in.isDir():
			require.Equal(t, 2+subdirs[ino], in.nlink, "links of directory %d", ino)
			requireBelowRoot(t, ns, in)
			require.Equal(t, ino != RootIno, names[ino] == 1)
		default:
			require.Equal(t, names[ino], in.nlink, "links of inode %d", ino)
			require.NotZero(t, in.nlink, "inode %d is an orphan", ino)
		}
		return true
	})
	requireCounted(t, ns)
	requireOrphansConsistent(t, ns)
	requireRepliesConsistent(t, ns)
	requireIndexed(t, ns)
	requireSubtreesCounted(t, ns)
	requireJudged(t, ns)
	requireHostsConsistent(t, ns)
	requireEventsConsistent(t, ns)
	require.NoError(t, ns.trust.Check())
}

func requireBelowRoot(t require.TestingT, ns *Namespace, dir *inode) {
	for steps := 0; dir.ino != RootIno; steps++ {
		require.LessOrEqual(t, steps, MaxDepth, "directory %d is below the root", dir.ino)
		above, found := ns.tree.inode(dir.parent)
		require.True(t, found)
		dir = above
	}
}

func requireOrphansConsistent(t require.TestingT, ns *Namespace) {
	expiring := 0
	ns.tree.orphans.byIno.Scan(func(ino ids.Inode, o *orphan) bool {
		_, found := ns.tree.inode(ino)
		require.True(t, found, "orphan %d has an inode", ino)
		if !ns.tree.orphans.isPinned(ino) {
			expiring++
			at, found := ns.tree.orphans.expiring.Get(o)
			require.True(t, found && at == o, "orphan %d expires", ino)
		}
		return true
	})
	require.Equal(t, expiring, ns.tree.orphans.expiring.Len())
	ns.tree.orphans.pins.Scan(func(p pin) bool {
		_, orphaned := ns.tree.orphans.byIno.Get(p.ino)
		_, found := ns.tree.orphans.pinsBySession.Get(p)
		require.True(t, orphaned && found, "pin %+v", p)
		return true
	})
	require.Equal(t, ns.tree.orphans.pins.Len(), ns.tree.orphans.pinsBySession.Len())
}

// requireSubtreesCounted compares what is kept of all names below each directory with the names, and the indexes that skip the others.
func requireSubtreesCounted(t require.TestingT, ns *Namespace) {
	timeouts, guarded, listed := 0, 0, 0
	used, guardedBelow, heights := map[ids.Inode]usage{}, map[ids.Inode]int{}, map[ids.Inode]int{}
	ns.tree.byName.Scan(func(e *entry) bool {
		in, _ := ns.tree.inode(e.ino)
		for above, levels := e.parent, 1; ; levels++ {
			u := used[above]
			u.add(1, in.bytesByName()+e.bytes())
			used[above] = u
			if e.isGuarded() {
				guardedBelow[above]++
			}
			if in.isDir() {
				heights[above] = max(heights[above], levels)
			}
			if above == RootIno {
				return true
			}
			dir, _ := ns.tree.inode(above)
			above = dir.parent
		}
	})
	ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		s := ns.tree.below[ino]
		require.Equal(t, in.isDir(), s != nil, "inode %d", ino)
		if s == nil {
			return true
		}
		require.Equal(t, []any{ino, used[ino], guardedBelow[ino], heights[ino]}, []any{s.dir, s.used, s.guarded, s.height()}, "directory %d", ino)
		require.True(t, ino == RootIno && s.up == nil || in.nlink == 0 || s.up == ns.tree.below[in.parent], "directory %d", ino)
		if ino != RootIno && in.nlink > 0 {
			require.Equal(t, min(guardedBelow[ino], 1), s.up.guarding[s], "directory %d", ino)
		}
		return true
	})
	ns.tree.byName.Scan(func(e *entry) bool {
		in, _ := ns.tree.inode(e.ino)
		if in.nlink > maxLockNames {
			require.True(t, in.manyNames || in.isDir())
		}
		if e.isGuarded() {
			guarded++
			require.Contains(t, ns.tree.guardedBelow(RootIno), e)
		}
		if e.mayTimeOut() {
			timeouts++
		}
		if ns.tree.mayBeListed(e) {
			listed++
			at, found := ns.tree.listed.Get(e)
			require.True(t, found && at == e, "%q may be listed", e.name)
		}
		isListed := (queryEngine{&ns.evaluator}).isListed(e, in) && (!ns.tree.isFull(in) || (queryEngine{&ns.evaluator}).isHeldByCreator(e, in))
		if isListed && (!in.manyNames || ns.tree.nameOf(e.ino) == e) {
			require.True(t, ns.tree.mayBeListed(e), "%q is in the list of locks", e.name)
		}
		if g := ns.guardOf(e, in); g.Guard != lockfact.GuardAnyone && e.stale == nil {
			require.True(t, e.guarded, "%q has a guard", e.name)
		}
		return true
	})
	require.Equal(t, []int{guarded, timeouts}, []int{ns.tree.guarded.Len(), ns.tree.timeouts.Len()})
	require.GreaterOrEqual(t, ns.tree.listed.Len(), listed)
	require.Len(t, ns.tree.guardedBelow(RootIno), guarded)
	watchers := map[watcher]int{}
	ns.sessions.byID.Scan(func(_ ids.Session, s *session) bool {
		if w, ok := s.watches(); ok {
			watchers[w]++
		}
		return true
	})
	require.Equal(t, watchers, ns.sessions.watchers)
}

func requireRepliesConsistent(t require.TestingT, ns *Namespace) {
	counts := map[ids.Session]int{}
	ns.sessions.replies.Scan(func(r *reply) bool {
		s, found := ns.sessions.byID.Get(r.session)
		require.True(t, found, "reply %d has a session", r.seq)
		require.True(t, r.seq > s.acked && r.result != nil, "reply %d is waited for", r.seq)
		counts[r.session]++
		return true
	})
	ended, kept := 0, 0
	ns.sessions.byID.Scan(func(id ids.Session, s *session) bool {
		if s.endedIndex != 0 {
			ended++
			kept += 1 + s.replies
			at, found := ns.sessions.ended.Get(s.endedIndex)
			require.True(t, found && at == id, "ended session %d expires", id)
		}
		require.Equal(t, counts[id], s.replies, "replies of session %d", id)
		return true
	})
	require.Equal(t, []int{ended, kept}, []int{ns.sessions.ended.Len(), ns.sessions.endedKept})
}

// requireIndexed compares the indexes with the entries and inodes that they are of.
func requireIndexed(t require.TestingT, ns *Namespace) {
	due, held, pending := 0, 0, 0
	makers, lockFiles, perHost := map[createdName]bool{}, map[ids.Inode]int{}, map[string]int{}
	ns.tree.byName.Scan(func(e *entry) bool {
		same, found := ns.tree.byIno.Get(e)
		require.True(t, found && same == e, "entry %q is found by its inode", e.name)
		same, found = ns.tree.byDue.Get(e)
		require.True(t, found == (e.due != 0) && (!found || same == e), "entry %q is found by when it is due", e.name)
		if found {
			due++
		}
		if e.pending != nil {
			pending++
			same, found := ns.tree.byPending.Get(e)
			require.True(t, found && same == e, "entry %q is found by when an event tells of it", e.name)
		}
		e.creator.each(func(p *process) {
			makers[e.createdBy(p)] = true
			_, found := ns.tree.byProcess.byCreator.Get(e.createdBy(p))
			require.True(t, found, "entry %q is found by who made it", e.name)
		})
		if e.lock {
			lockFiles[e.parent]++
		}
		return true
	})
	require.Equal(t, ns.tree.byName.Len(), ns.tree.byIno.Len())
	require.Equal(t, due, ns.tree.byDue.Len())
	require.Equal(t, pending, ns.tree.byPending.Len())
	require.Equal(t, len(makers), ns.tree.byProcess.byCreator.Len())
	require.Equal(t, lockFiles, ns.tree.lockFiles)
	requireLocksCounted(t, ns)
	ns.tree.inodes.Scan(func(ino ids.Inode, in *inode) bool {
		h, ok := in.heldBy()
		if !ok {
			return true
		}
		held++
		perHost[h.host()]++
		same, found := ns.tree.byProcess.byProcess.Get(h)
		require.True(t, found && same.ino == ino && same.says == in.facts, "inode %d is found by its process", ino)
		return true
	})
	require.Equal(t, held, ns.tree.byProcess.byProcess.Len())
	require.Equal(t, perHost, ns.tree.byProcess.perHost)
}

// requireJudged compares what is kept of each lock with what its content and the rules say.
func requireJudged(t require.TestingT, ns *Namespace) {
	ns.tree.byName.Scan(func(e *entry) bool {
		in, _ := ns.tree.inode(e.ino)
		require.True(t, in.facts == nil || in.facts == e.known, "what is known of %q is what its content says", e.name)
		require.True(t, e.pending == nil || !e.announced, "%q is told of once", e.name)
		require.True(t, e.pending == nil || e.pending.until <= ns.time+int64(eventDelay), "%q is told of soon", e.name)
		require.Equal(t, isLockNowByTheBook(ns, e, in), ns.isLock(e, in), "is %q a lock", e.name)
		require.Equal(t, ns.isLock(e, in), ns.describeReason(e, in) != "", "%q", e.name)
		if in.kernelLocked {
			require.True(t, e.stale == nil && e.due == 0, "lockfs never removes %q", e.name)
		}
		require.True(t, 0 < e.token && e.token <= ids.Token(ns.index) && e.createdAt <= ns.index, "token %d of %q", e.token, e.name)
		require.LessOrEqual(t, e.acquired, ns.time)
		require.LessOrEqual(t, e.contentAt, ns.time)
		require.True(t, in.gone == nil || in.facts.process != nil, "%q has no process that could be gone", e.name)
		again := *e
		ns.evaluate(&again, in)
		if again.format = e.format; e.lock {
			again.format = ns.effective(e, in).Format
		}
		require.True(t, again.sameEvaluation(e), "%q judged again is %+v, not %+v", e.name, again, *e)

		g := ns.effective(e, in)
		isRemoved := g.OnStale == lockfact.Remove && !ns.locks.Locked(in.ino) && (!ns.tree.isFull(in) || holdsOnlyItsCreatorsLocks(ns, e, in))
		gone := g.gone != nil && g.ByProcess()
		switch {
		case e.stale != nil && isRemoved && in.isDir() && in.ctime > e.stale.since:
			require.Equal(t, in.ctime+int64(contentGrace), e.due, "%q", e.name)
		case e.stale != nil && isRemoved, e.stale == nil && gone:
			require.EqualValues(t, math.MinInt64, e.due, "%q", e.name)
		case e.stale != nil:
			require.Zero(t, e.due, "%q", e.name)
		default:
			require.Equal(t, g.ExpiresAt, e.due, "%q", e.name)
		}
		state := "stale"
		if g = ns.guardOf(e, in); e.stale == nil && (g.gone == nil || !g.ByProcess()) && !g.StaleAt(ns.time) {
			state = "held"
			if _, mounted := ns.hosts.byName.Get(g.Host); g.ByProcess() && (!mounted || !ns.reachable(g)) {
				state = "unreachable"
			}
		}
		if by := ns.effective(e, in); in.gone != nil && by.Format == lockfact.PID && !by.byCreator && ns.ruleFor(e).GetOnStale() == "" {
			crashed := strings.Contains(in.gone.reason, "was ended by signal") || strings.HasPrefix(in.gone.reason, "its host")
			mayGo := crashed && e.exclusive && in.facts.OnStale == lockfact.Remove && !ns.locks.Locked(in.ino)
			require.Equal(t, mayGo, isRemoved, "%q goes only if its process crashed: %s", e.name, in.gone.reason)
		}
		require.Equal(t, state, queryEngine{&ns.evaluator}.describe(e, in).GetState(), "%q", e.name)
		return true
	})
}

// holdsOnlyItsCreatorsLocks reports whether a directory is stale by the end of the process that made it, and has nothing in it but some
// files that are locks of the same process.
func holdsOnlyItsCreatorsLocks(ns *Namespace, dir *entry, in *inode) bool {
	entries := ns.tree.entriesOf(in.ino)
	if ns.ruleFor(dir).GetHolder() != "creator" || dir.creator == nil || dir.stale == nil || !dir.stale.ofCreator || len(entries) > 16 {
		return false
	}
	for _, e := range entries {
		file, _ := ns.tree.inode(e.ino)
		var holder *process
		switch rule := ns.ruleFor(e); {
		case file.kernelLocked:
		case rule.GetHolder() == "creator" && e.creator != nil:
			holder = e.creator.process
		case file.facts != nil && (rule.GetFormat() == "" || rule.GetFormat() == file.facts.Format.String()):
			holder = file.facts.process
		}
		if file.isDir() || holder == nil || holder.processID != dir.creator.process.processID || !isLockByTheBook(ns, e, file) || ns.locks.Locked(file.ino) {
			return false
		}
	}
	return true
}

// isLockNowByTheBook adds the locks that were emptied just now to those of isLockByTheBook.
func isLockNowByTheBook(ns *Namespace, e *entry, in *inode) bool {
	since := e.contentAt
	if since == 0 || in.isDir() {
		since = in.ctime
	}
	if in.facts == nil && e.known != nil && ns.time < since+int64(contentGrace) {
		before := *in
		before.facts = e.known
		return isLockByTheBook(ns, e, in) || isLockByTheBook(ns, e, &before)
	}
	return isLockByTheBook(ns, e, in)
}

// isLockByTheBook says what is a lock in the words of the design.
func isLockByTheBook(ns *Namespace, e *entry, in *inode) bool {
	own := isLockWithoutRules(ns, e, in)
	rule := ns.ruleFor(e)
	if removes := rule.GetOnStale() == "remove" || rule.GetHolder() != "" && rule.GetOnStale() != "keep"; removes && !rule.GetAnyFile() && !mayRemoveByTheBook(ns, e, in) {
		rule = nil
	}
	byRule := rule.GetHolder() != "" || rule.GetStaleAfter() != 0 || rule.GetGuard() == "host" ||
		rule.GetFormat() != "" && rule.GetFormat() != "none"
	return !in.unlisted && !in.kernelLocked && !in.manyNames && rule.GetFormat() != "data" && (byRule || own)
}

func isLockWithoutRules(ns *Namespace, e *entry, in *inode) bool {
	holdsLocks := holdsLocksByTheBook(ns, in)
	switch {
	case factsCountByTheBook(e, in):
		return true
	case !e.exclusive:
		return false
	case in.isDir():
		return holdsLocks || !ns.tree.hasEntries(in.ino) && isNamedByTheBook(e)
	case isNamedByTheBook(e):
		return len(in.content) <= 80 || len(in.evidence) > 0 && !in.shared
	}
	return len(in.evidence) > 1 && !in.shared || len(in.content) == 0 && len(in.evidence) > 0 && !in.shared
}

// mayRemoveByTheBook says on what a rule that removes is let loose.
func mayRemoveByTheBook(ns *Namespace, e *entry, in *inode) bool {
	pieces := 0
	if len(in.content) == 0 && (in.isDir() || in.version <= e.createdAt) {
		pieces++
	}
	if isNamedByTheBook(e) {
		pieces++
	}
	if !in.shared {
		pieces += len(in.evidence)
	}
	switch {
	case factsCountByTheBook(e, in):
		return in.facts.Format != lockfact.PID || e.exclusive
	case !e.exclusive:
		return false
	case ns.tree.hasEntries(in.ino) || holdsLocksByTheBook(ns, in):
		return holdsLocksByTheBook(ns, in) || e.says.name == storepb.NameSays_SAYS_LOCK
	}
	return pieces >= 2
}

func factsCountByTheBook(e *entry, in *inode) bool {
	return in.facts != nil && (!in.facts.Conditional || e.exclusive || isNamedByTheBook(e))
}

func isNamedByTheBook(e *entry) bool {
	lock := storepb.NameSays_SAYS_LOCK
	return e.says.name == lock || e.says.name == storepb.NameSays_SAYS_NOTHING && e.says.directory == lock
}

func holdsLocksByTheBook(ns *Namespace, in *inode) (holdsLocks bool) {
	if !in.isDir() {
		return false
	}
	for _, inside := range ns.tree.entriesOf(in.ino) {
		file, _ := ns.tree.inode(inside.ino)
		holdsLocks = holdsLocks || !file.isDir() && isLockByTheBook(ns, inside, file)
	}
	return holdsLocks
}

func requireHostsConsistent(t require.TestingT, ns *Namespace) {
	sessions, boots := map[string]int{}, map[string]string{}
	ns.sessions.byID.Scan(func(_ ids.Session, s *session) bool {
		if s.endedIndex == 0 {
			require.True(t, sessions[s.host] == 0 || boots[s.host] == s.bootID, "host %q was booted once", s.host)
			sessions[s.host]++
			boots[s.host] = s.bootID
		}
		return true
	})
	ns.hosts.byName.Scan(func(name string, h *host) bool {
		require.Equal(t, sessions[name], h.sessions, "sessions of host %q", name)
		require.True(t, h.sessions == 0 || boots[name] == h.bootID, "boot of host %q", name)
		require.LessOrEqual(t, h.since, ns.time)
		delete(sessions, name)
		return true
	})
	require.Empty(t, sessions, "hosts that are not known")
}

func requireEventsConsistent(t require.TestingT, ns *Namespace) {
	of := 0
	for _, numbers := range ns.events.byClass {
		require.LessOrEqual(t, numbers.Len(), keptEvents)
		of += numbers.Len()
	}
	require.Equal(t, ns.events.kept.Len(), of)
	anew := ns.events.last >= 1<<30 // more than a test makes: numbers have a gap where the state began anew
	mayLack := anew || slices.ContainsFunc(ns.events.byClass[:], func(numbers *btree.Set[uint64]) bool { return numbers.Len() == keptEvents })
	var before *storepb.Event
	ns.events.kept.Scan(func(at uint64, e *storepb.Event) bool {
		follows := before != nil && before.GetNumber()+1 == at
		require.True(t, e.GetNumber() == at && (follows || mayLack || before == nil && at == 1), "event %d of number %d", at, e.GetNumber())
		require.Equal(t, eventchain.Hash(e), e.GetHash())
		begins := e.GetEvent() == eventClusterBegun && len(e.GetBefore()) == 0
		require.True(t, !follows || begins || bytes.Equal(before.GetHash(), e.GetBefore()), "event %d follows another one", at)
		before = e
		return true
	})
	require.True(t, before == nil || before.GetNumber() == ns.events.last, "the last event is kept")
	total := uint64(0)
	ns.EventCounts(func(_ string, count uint64) { total += count })
	require.True(t, ns.events.last == total || anew, "%d events, the last is %d", total, ns.events.last)
}
