package namespace

import (
	"fmt"
	"strings"

	"lockfs/raftstore/glob"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) putEntryEvaluated(e *entry, in *inode) *entry {
	judged := *e
	ns.evaluate(&judged, in)
	ns.tree.putEntry(&judged)
	ns.reevaluateDirectory(e, judged.lock != e.lock)
	return &judged
}

// reevaluateDirectory evaluates a directory again after a file in it has become a lock or ceased to be one. A
// stale directory is evaluated after each change of a name, as lockfs may remove it with its entries.
func (ns *Namespace) reevaluateDirectory(e *entry, changed bool) {
	if ns.rules.byPattern.Len() == 0 {
		return
	}
	if dir := ns.tree.nameOf(e.parent); dir != nil && (changed || dir.stale != nil) {
		ns.reevaluate(dir)
	}
}

// reevaluate is for names with changed times of the inode or other rules for the path. Most judgements stay
// as they are and are not stored again.
func (ns *Namespace) reevaluate(names ...*entry) {
	for _, e := range names {
		ns.tree.touchEntry(e) // a rule alone may make it a lock
		in, found := ns.tree.inode(e.ino)
		if !found {
			continue
		}
		judged := *e
		if ns.evaluate(&judged, in); !judged.sameEvaluation(e) {
			ns.tree.putEntry(&judged)
		}
		ns.reevaluateDirectory(e, judged.lock != e.lock)
	}
}

// judgeTimes evaluates names after a change of the inode's times. Rules count from the mtime. The removal of
// a stale directory waits for some time after each change of it.
func (ns *Namespace) judgeTimes(before, in *inode) {
	if ns.rules.byPattern.Len() == 0 {
		return
	}
	for _, e := range ns.tree.evaluatedNames(in) {
		if in.mtime != before.mtime || in.isDir() && e.stale != nil {
			ns.reevaluate(e)
		}
	}
}

// pathForRules returns the present or future path of a directory; empty without rules, since it does not
// matter then.
func (ns *Namespace) pathForRules(e *entry, in *inode) string {
	if !in.isDir() || !ns.rules.are() {
		return ""
	}
	return ns.tree.path(e)
}

// refuseReevaluation refuses to rename a directory if other rules count at its new path and too many names
// below would be evaluated again.
func (ns *Namespace) refuseReevaluation(source, target *entry, moved *inode) *storepb.Result {
	from, to := ns.pathForRules(source, moved), ns.pathForRules(target, moved)
	if from == to || ns.tree.below[moved.ino].used.inodes <= maxMoved || !ns.rules.differBelow(from, to) {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_OTHER_RULES, Message: fmt.Sprintf(
		"%d names are below the directory, for which other rules count at its new place: with more than %d, copy and remove it", ns.tree.below[moved.ino].used.inodes, maxMoved)}
}

// reevaluateMoved evaluates every name below a moved directory, if other rules count there.
func (ns *Namespace) reevaluateMoved(dir *inode, from, to string) {
	if from != to && ns.rules.differBelow(from, to) {
		ns.reevaluateSubtree(dir.ino)
	}
}

func (ns *Namespace) reevaluateSubtree(dir ids.Inode) {
	for _, e := range ns.tree.entriesOf(dir) {
		ns.reevaluate(e)
		if in, found := ns.tree.inode(e.ino); found && in.isDir() {
			ns.reevaluateSubtree(in.ino)
		}
	}
}

// reevaluateMatching evaluates the names whose paths match a pattern. Its rule does not affect others.
func (ns *Namespace) reevaluateMatching(pattern string) {
	var fitting []*entry
	dir, above := ids.Inode(0), "" // path of a directory, with a slash at its end
	ns.tree.byName.Scan(func(e *entry) bool {
		if e.parent != dir {
			dir, above = e.parent, strings.TrimSuffix(ns.tree.path(e), e.name)
		}
		if glob.Match(pattern, above+e.name) {
			fitting = append(fitting, e)
		}
		return true
	})
	ns.reevaluate(fitting...)
}

// touchDir records a change of a directory's entries; subdirs is the change in the number of directories.
func (ns *Namespace) touchDir(ino ids.Inode, subdirs int) {
	dir, found := ns.tree.inode(ino)
	if !found {
		return
	}
	changed := *dir
	changed.mtime, changed.ctime, changed.changed = ns.time, ns.time, ns.index
	changed.nlink = uint32(int(changed.nlink) + subdirs)
	ns.tree.putInode(&changed)
	if ns.rules.byPattern.Len() == 0 {
		return // neither its time nor its entries matter
	}
	if e := ns.tree.nameOf(ino); e != nil {
		ns.reevaluate(e)
	}
}
