package namespace

import (
	"math"
	"strings"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (t *tree) entry(parent ids.Inode, name []byte) (*entry, bool) {
	return t.byName.Get(&entry{parent: parent, name: string(name)})
}

func (t *tree) newCookie() uint64 {
	cookie := t.nextCookie
	t.nextCookie++
	return cookie
}

// named returns the entry of a name in a message, if it has that inode.
func (t *tree) named(name *storepb.Observation, ino ids.Inode) (*entry, bool) {
	if name == nil {
		return nil, false
	}
	e, found := t.entry(ids.Inode(name.GetParent()), name.GetName())
	return e, found && e.ino == ino
}

// nameOf returns the first name of an inode. A directory has only one; the root has none.
func (t *tree) nameOf(ino ids.Inode) (first *entry) {
	t.byIno.Ascend(&entry{ino: ino}, func(e *entry) bool {
		if e.ino == ino {
			first = e
		}
		return false
	})
	return first
}

func (t *tree) namesOf(ino ids.Inode) []*entry {
	var names []*entry
	t.byIno.Ascend(&entry{ino: ino}, func(e *entry) bool {
		if e.ino != ino {
			return false
		}
		names = append(names, e)
		return true
	})
	return names
}

// eachParent visits the directories with names of an inode, each once, until visit returns false.
func (t *tree) eachParent(ino ids.Inode, visit func(dir ids.Inode) bool) {
	for from := (&entry{ino: ino}); from != nil; {
		var next *entry
		t.byIno.Ascend(from, func(e *entry) bool {
			if e.ino == ino && visit(e.parent) {
				next = &entry{ino: ino, parent: e.parent + 1}
			}
			return false
		})
		from = next
	}
}

// path returns a name's path from the root, without a leading slash.
func (t *tree) path(e *entry) string {
	elements := []string{e.name}
	for e.parent != RootIno {
		if e = t.nameOf(e.parent); e == nil {
			break // a removed directory has no entries
		}
		elements = append([]string{e.name}, elements...)
	}
	return strings.Join(elements, "/")
}

func (t *tree) entriesOf(dir ids.Inode) []*entry { return t.entriesUpTo(dir, math.MaxInt) }

func (t *tree) entriesUpTo(dir ids.Inode, most int) []*entry {
	var entries []*entry
	t.byName.Ascend(&entry{parent: dir}, func(e *entry) bool {
		if e.parent != dir || len(entries) == most {
			return false
		}
		entries = append(entries, e)
		return true
	})
	return entries
}

func (t *tree) hasEntries(dir ids.Inode) bool {
	found := false
	t.byName.Ascend(&entry{parent: dir}, func(e *entry) bool {
		found = e.parent == dir
		return false
	})
	return found
}

func (t *tree) isFull(in *inode) bool { return in.isDir() && t.hasEntries(in.ino) }

// directory returns a directory with a name.
func (t *tree) directory(ino ids.Inode) (*inode, storepb.Code) {
	dir, found := t.inode(ino)
	switch {
	case !found:
		return nil, storepb.Code_NOT_FOUND
	case !dir.isDir():
		return nil, storepb.Code_NOT_DIRECTORY
	case dir.nlink == 0:
		return nil, storepb.Code_NOT_FOUND
	}
	return dir, storepb.Code_OK
}

func (t *tree) isUnlisted(ino ids.Inode) bool {
	in, found := t.inode(ino)
	return found && in.unlisted
}

// evaluatedNames returns the names to evaluate again after a change of the inode: none of a file with many
// names.
func (t *tree) evaluatedNames(in *inode) []*entry {
	if in.manyNames {
		return nil
	}
	return t.namesOf(in.ino)
}
