package namespace

import (
	"fmt"
	"strings"

	"lockfs/raftstore/glob"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (k *Namespace) putJudged(e *entry, in *inode) *entry {
	judged := *e
	k.judgeEntry(&judged, in)
	k.tree.putEntry(&judged)
	k.judgeDirectoryOf(e, judged.lock != e.lock)
	return &judged
}

// judgeDirectoryOf judges a directory again after a file in it has become a lock or ceased to be one. A stale
// directory is judged after each change of a name, as lockfs may remove it with its entries.
func (k *Namespace) judgeDirectoryOf(e *entry, changed bool) {
	if k.rules.byPattern.Len() == 0 {
		return
	}
	if dir := k.tree.nameOf(e.parent); dir != nil && (changed || dir.stale != nil) {
		k.judgeAgain(dir)
	}
}

// judgeAgain is for names with changed times of the inode or other rules for the path. Most judgements stay
// as they are and are not stored again.
func (k *Namespace) judgeAgain(names ...*entry) {
	for _, e := range names {
		k.tree.touchEntry(e) // a rule alone may make it a lock
		in, found := k.tree.inode(e.ino)
		if !found {
			continue
		}
		judged := *e
		if k.judgeEntry(&judged, in); !judged.sameJudgement(e) {
			k.tree.putEntry(&judged)
		}
		k.judgeDirectoryOf(e, judged.lock != e.lock)
	}
}

// judgeTimes judges names after a change of the inode's times. Rules count from the mtime. The removal of a
// stale directory waits for some time after each change of it.
func (k *keeper) judgeTimes(before, in *inode) {
	if k.rules.byPattern.Len() == 0 {
		return
	}
	for _, e := range k.tree.judgedNames(in) {
		if in.mtime != before.mtime || in.isDir() && e.stale != nil {
			k.judgeAgain(e)
		}
	}
}

// placeFor returns the present or future path of a directory; empty without rules, since it does not matter
// then.
func (k *Namespace) placeFor(e *entry, in *inode) string {
	if !in.isDir() || !k.rules.are() {
		return ""
	}
	return k.tree.path(e)
}

// refuseJudging refuses to rename a directory if other rules count at its new path and too many names below
// would be judged again.
func (k *Namespace) refuseJudging(source, target *entry, moved *inode) *storepb.Result {
	from, to := k.placeFor(source, moved), k.placeFor(target, moved)
	if from == to || k.tree.below[moved.ino].used.inodes <= mostMoved || !k.rules.differBelow(from, to) {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_OTHER_RULES, Message: fmt.Sprintf(
		"%d names are below the directory, for which other rules count at its new place: with more than %d, copy and remove it", k.tree.below[moved.ino].used.inodes, mostMoved)}
}

// judgeMoved judges every name below a moved directory, if other rules count there.
func (k *Namespace) judgeMoved(dir *inode, from, to string) {
	if from != to && k.rules.differBelow(from, to) {
		k.judgeBelow(dir.ino)
	}
}

func (k *Namespace) judgeBelow(dir ids.Inode) {
	for _, e := range k.tree.entriesOf(dir) {
		k.judgeAgain(e)
		if in, found := k.tree.inode(e.ino); found && in.isDir() {
			k.judgeBelow(in.ino)
		}
	}
}

// judgeWhere judges the names whose paths match a pattern. Its rule does not affect others.
func (k *Namespace) judgeWhere(pattern string) {
	var fitting []*entry
	dir, above := ids.Inode(0), "" // path of a directory, with a slash at its end
	k.tree.byName.Scan(func(e *entry) bool {
		if e.parent != dir {
			dir, above = e.parent, strings.TrimSuffix(k.tree.path(e), e.name)
		}
		if glob.Match(pattern, above+e.name) {
			fitting = append(fitting, e)
		}
		return true
	})
	k.judgeAgain(fitting...)
}

// touchDir records a change of a directory's entries; subdirs is the change in the number of directories.
func (k *Namespace) touchDir(ino ids.Inode, subdirs int) {
	dir, found := k.tree.inode(ino)
	if !found {
		return
	}
	changed := *dir
	changed.mtime, changed.ctime, changed.changed = k.time, k.time, k.index
	changed.nlink = uint32(int(changed.nlink) + subdirs)
	k.tree.putInode(&changed)
	if k.rules.byPattern.Len() == 0 {
		return // neither its time nor its entries matter
	}
	if e := k.tree.nameOf(ino); e != nil {
		k.judgeAgain(e)
	}
}
