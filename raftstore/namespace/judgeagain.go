package namespace

import (
	"fmt"
	"strings"

	"lockfs/raftstore/glob"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (k *keeper) putJudged(e *entry, in *inode) *entry {
	judged := *e
	k.judgeEntry(&judged, in)
	k.tree.putEntry(&judged)
	k.judgeDirectoryOf(e, judged.lock != e.lock)
	return &judged
}

// judgeDirectoryOf judges a directory again in which a file has become a lock or is none any more; also a stale one in which a name
// has changed otherwise, as lockfs may remove the directory with its entries.
func (k *keeper) judgeDirectoryOf(e *entry, changed bool) {
	if k.rules.byPattern.Len() == 0 {
		return
	}
	if dir := k.tree.nameOf(e.parent); dir != nil && (changed || dir.stale != nil) {
		k.judgeAgain(dir)
	}
}

// judgeAgain is for names whose inode has other times, or whose path has other rules. Most judgements
// stay as they are, and cost no more than to come to them.
func (k *keeper) judgeAgain(names ...*entry) {
	for _, e := range names {
		k.tree.touchEntry(e) // whether it is a lock may follow from a rule alone
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

// placeFor returns the path that a directory has, or is to have; empty if there is no rule and it does not matter.
func (k *keeper) placeFor(e *entry, in *inode) string {
	if !in.isDir() || !k.rules.are() {
		return ""
	}
	return k.tree.path(e)
}

// refuseJudging refuses to rename a directory to where other rules count for the names below, if these are too many to be judged again.
func (k *keeper) refuseJudging(source, target *entry, moved *inode) *storepb.Result {
	from, to := k.placeFor(source, moved), k.placeFor(target, moved)
	if from == to || k.tree.below[moved.ino].used.inodes <= mostMoved || !k.rules.differBelow(from, to) {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_OTHER_RULES, Message: fmt.Sprintf(
		"%d names are below the directory, for which other rules count at its new place: with more than %d, copy and remove it", k.tree.below[moved.ino].used.inodes, mostMoved)}
}

// judgeMoved judges every name below a directory that was moved, if other rules count there.
func (k *keeper) judgeMoved(dir *inode, from, to string) {
	if from != to && k.rules.differBelow(from, to) {
		k.judgeBelow(dir.ino)
	}
}

func (k *keeper) judgeBelow(dir ids.Inode) {
	for _, e := range k.tree.entriesOf(dir) {
		k.judgeAgain(e)
		if in, found := k.tree.inode(e.ino); found && in.isDir() {
			k.judgeBelow(in.ino)
		}
	}
}

// judgeWhere judges the names again whose paths fit a pattern: its rule says nothing of any other.
func (k *keeper) judgeWhere(pattern string) {
	var fitting []*entry
	dir, above := ids.Inode(0), "" // the path of a directory, with a slash at its end
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

// touchDir records that a directory's entries changed; subdirs is the change in their number.
func (k *keeper) touchDir(ino ids.Inode, subdirs int) {
	dir, found := k.tree.inode(ino)
	if !found {
		return
	}
	changed := *dir
	changed.mtime, changed.ctime, changed.changed = k.time, k.time, k.index
	changed.nlink = uint32(int(changed.nlink) + subdirs)
	k.tree.putInode(&changed)
	if k.rules.byPattern.Len() == 0 {
		return // neither its time nor what is in it matters
	}
	if e := k.tree.nameOf(ino); e != nil {
		k.judgeAgain(e)
	}
}
