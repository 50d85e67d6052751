package namespace

import (
	"cmp"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// entry is one name in a directory. It is never modified once it is in a tree.
type entry struct {
	parent ids.Inode
	name   string
	ino    ids.Inode
	cookie uint64    // its place in listings; kept when another inode takes the name over
	made   ids.Index // index of the command that gave the name its present inode

	exclusive bool            // it was created exclusively, and not replaced by an ordinary rename since
	madeOn    sharedString    // host of the process that created it exclusively
	madeBy    uint32          // thread id of that process, as its mount saw it; 0: it is not known
	says      says            // the words of the name and of its directory's name, when the name came to be
	lock      bool            // it is one, if it is a file's; see isLock
	format    lockfact.Format // of the lock; it counts for nothing but lockCounts
	maker     *maker          // nil unless a rule wants to know
	token     ids.Token       // index of the command that gave the name its present holder
	acquired  int64           // time of that command
	contentAt int64           // when the name got its content, or became empty, which chmod does not change; 0: with the inode's ctime
	known     *facts          // of the holder, kept while the content does not tell; nil: it never told
	announced bool            // an event told that it was acquired
	pending   *pending        // the event is to come; nil: none will
	stale     *staleness
	due       int64 // when lockfs finds it stale or removes it, with the rule for its path; 0: never

	// These follow from the inode and the rules, like due, lock and format.
	guarded bool         // a guard may refuse to move it while it is not stale
	ruled   bool         // a rule makes it a lock, if it is a directory's
	timeout *hostTimeout // nil: the name waits for its silent host for ever
}

// isGuarded reports whether a guard may refuse to move the name.
func (e *entry) isGuarded() bool { return e.guarded && e.stale == nil }

// Cookies of the two entries that every directory has; others are larger.
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

// pending is an acquisition of which no event has told yet. It is never modified.
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

func (e *entry) makerIs(p *process) made {
	return made{e.maker.host.String(), p.processID, e.parent, e.name}
}
