package namespace

import (
	"cmp"
	"math"
	"strings"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// entry is one name in a directory. It is never modified once it is in a tree. contentAt does not change with
// chmod.
type entry struct {
	parent    ids.Inode
	name      string
	ino       ids.Inode
	cookie    uint64    // place in listings; another inode keeps it
	createdAt ids.Index // index of the command that gave the name its present inode

	exclusive   bool            // created exclusively, and not replaced by an ordinary rename since
	creatorHost internedString  // host of the process that created it exclusively
	creatorPID  uint32          // thread id of that process, as its mount saw it; 0: unknown
	says        nameEvidence    // evidence in the name and its directory's name at its creation
	lock        bool            // a lock in a file; see isLock
	format      lockfact.Format // of the lock; only for lockCounts
	creator     *creator        // nil unless a rule needs it
	token       ids.Token       // index of the command that gave the name its present holder
	acquired    int64           // time of that command
	contentAt   int64           // when it got its content or became empty; 0: the inode's ctime
	known       *facts          // facts of the holder, kept while the content names none; nil: it never did
	announced   bool            // an event reported its acquisition
	pending     *pending        // the event is still to come; nil: none will
	stale       *staleness
	due         int64 // when it becomes stale or is removed, by its rule too; 0: never

	// These follow from the inode and the rules, like due, lock and format.
	guarded bool         // a guard may refuse to move it while it is not stale
	ruled   bool         // a directory a rule makes a lock
	timeout *hostTimeout // nil: the name waits for its silent host forever
}

// isGuarded reports whether a guard may refuse to move the name.
func (e *entry) isGuarded() bool { return e.guarded && e.stale == nil }

// Cookies of the two entries of every directory; others are larger.
const (
	cookieSelf   = 1
	cookieParent = 2
)

func compareByName(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.name, b.name))
}

func lessByName(a, b *entry) bool {
	if a.parent != b.parent {
		return a.parent < b.parent
	}
	return a.name < b.name
}

func lessByCookie(a, b *entry) bool {
	if a.parent != b.parent {
		return a.parent < b.parent
	}
	return a.cookie < b.cookie
}

func lessByIno(a, b *entry) bool {
	if a.ino != b.ino {
		return a.ino < b.ino
	}
	return lessByName(a, b)
}

func lessByPending(a, b *entry) bool {
	if a.pending.until != b.pending.until {
		return a.pending.until < b.pending.until
	}
	return lessByName(a, b)
}

func lessByDue(a, b *entry) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return lessByName(a, b)
}

// pending is an acquisition without an event so far. It is never modified.
type pending struct {
	until int64
	by    *storepb.Caller
}

func checkName(name []byte) storepb.Code {
	if len(name) > MaxName {
		return storepb.Code_NAME_TOO_LONG
	}
	if len(name) == 0 || string(name) == "." || string(name) == ".." {
		return storepb.Code_INVALID
	}
	for _, c := range name {
		if c == 0 || c == '/' {
			return storepb.Code_INVALID
		}
	}
	return storepb.Code_OK
}

func (e *entry) createdBy(p *process) createdName {
	return createdName{e.creator.host.String(), p.processID, e.parent, e.name}
}

// hostTimeout belongs to a name with a host timeout in its rule: the pid namespace of its holder, and how
// long the name waits while no mount sees that. It is never modified.
type hostTimeout struct {
	watcher
	after time.Duration
}

func (t *hostTimeout) equal(other *hostTimeout) bool {
	return t == other || t != nil && other != nil && *t == *other
}

// mayTimeOut reports whether the name may become stale because its host is silent.
func (e *entry) mayTimeOut() bool { return e.timeout != nil && e.stale == nil }

func (w watcher) compare(other watcher) int {
	return cmp.Or(strings.Compare(w.host, other.host), strings.Compare(w.bootID, other.bootID), cmp.Compare(w.namespace, other.namespace))
}

func (w watcher) next() watcher {
	if w.namespace < math.MaxUint64 {
		return watcher{w.host, w.bootID, w.namespace + 1}
	}
	return watcher{w.host, w.bootID + "\x00", 0}
}

func lessByTimeout(a, b *entry) bool {
	return cmp.Or(a.timeout.compare(b.timeout.watcher), cmp.Compare(a.timeout.after, b.timeout.after), compareByName(a, b)) < 0
}

// watcher is a pid namespace of a host in one boot. The mounts there see the ends of its processes.
type watcher struct {
	host, bootID string
	namespace    uint64 // 0: unknown, and any counts
}

// isLockDir reports whether a directory of this name is a lock while it is empty, rules aside.
func (e *entry) isLockDir() bool {
	return e.exclusive && lockfact.Evidence{Name: lockfact.NameSays(e.says.name), Directory: lockfact.NameSays(e.says.directory)}.IsEnough()
}
