package namespace

import (
	"path"
	"slices"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Permissions that somebody may have on an inode, as in each of the three parts of its mode.
const (
	MayRead   = 0o4
	MayWrite  = 0o2
	MaySearch = 0o1 // a directory
)

// Permits tells whether a viewer is sure to have some permissions on an inode, as the kernel decides it: root has all, the owner
// has those of the owner, a member of the group those of the group, even if others have more. If not all his groups are known, he
// needs them as a member and as none. nil has none.
func Permits(viewer *storepb.Viewer, attr *storepb.Attr, need uint32) bool {
	return permits(viewer, attr.GetMode(), attr.GetUid(), attr.GetGid(), need)
}

func permits(viewer *storepb.Viewer, mode, uid, gid, need uint32) bool {
	owner, group, other := mode>>6, mode>>3, mode
	granted := other
	switch {
	case viewer == nil:
		return false
	case viewer.GetUid() == 0:
		return true
	case viewer.GetUid() == uid:
		granted = owner
	case viewer.GetGid() == gid || slices.Contains(viewer.GetGroups(), gid):
		granted = group
	case viewer.GetMoreGroups():
		granted = group & other
	}
	return granted&need == need
}

// view is what one viewer is told in the answer to one query: of directories that are the same for many locks it decides once.
type view struct {
	reader
	viewer *storepb.Viewer
	dirs   map[ids.Inode]bool // whether he could walk to a directory, and look names up in it
}

func (v *view) ofRoot() bool { return v.viewer != nil && v.viewer.GetUid() == 0 }

// reaches tells whether the viewer could walk to a directory from the root, and look names up in it.
func (v *view) reaches(dir ids.Inode) bool {
	may, decided := v.dirs[dir]
	if !decided {
		in, code := v.tree.directory(dir)
		may = code == storepb.Code_OK && v.permits(in, MaySearch) && (dir == RootIno || v.reaches(in.parent))
		v.dirs[dir] = may
	}
	return may
}

func (v *view) permits(in *inode, need uint32) bool {
	return permits(v.viewer, in.mode, in.uid, in.gid, need)
}

// lock answers what the viewer may know of a name; nil: nothing. Of what he could not read he is told what stat(2) would tell him, and
// that it is a lock, since when.
func (v *view) lock(e *entry, in *inode) *storepb.Lock {
	switch {
	case !v.reaches(e.parent):
		return nil
	case v.permits(in, MayRead):
		lock := v.describe(e, in)
		if in.isFile() && (in.kernelLocked || in.otherLocked) && !in.unlisted {
			lock.AdvisoryLocks = v.advisoriesOf(in.ino, advisoriesOfLock, anyFile)
		}
		return lock
	}
	return &storepb.Lock{
		Parent: uint64(e.parent), Name: []byte(e.name), Path: []byte(v.tree.path(e)), Acquired: e.acquired, Attr: in.attr(),
	}
}

// advisories tells whether the viewer may know of the locks and requests of a file: if he could read it. Of one without a name
// only root knows.
func (v *view) advisories(ino ids.Inode) bool {
	if v.ofRoot() {
		return true
	}
	e := v.tree.nameOf(ino)
	if e == nil || !v.reaches(e.parent) {
		return false
	}
	in, found := v.tree.inode(ino)
	return found && v.permits(in, MayRead)
}

// comesAndGoes are the events that stat(2) at the right moment would have told of.
var comesAndGoes = map[string]bool{eventAcquired: true, eventReleased: true, eventRemoved: true}

// event answers what the viewer may know of an event; nil: nothing. It is judged by who may walk to the very directory by the
// very path today, and by the permissions that the file had then: neither can be had back by who makes a path anew. If that
// directory is gone, or elsewhere, nobody but root and the one who did it knows any more. Hashes are for root: whoever has those of the events
// around one that is not for him could try out what that says.
func (v *view) event(e *storepb.Event) *storepb.Event {
	if v.ofRoot() {
		return e
	}
	if e = v.part(e); e.GetHash() == nil {
		return e
	}
	unchained := proto.CloneOf(e)
	unchained.Before, unchained.Hash = nil, nil
	return unchained
}

// part is the event for others than root.
func (v *view) part(e *storepb.Event) *storepb.Event {
	if len(e.GetPath()) == 0 {
		return e // what is about a host is for everybody
	}
	did := e.GetBy() != nil && v.viewer != nil && e.GetBy().GetUid() == v.viewer.GetUid()
	if !did && !v.reachesBy(ids.Inode(e.GetParent()), string(e.GetPath())) {
		return nil
	}
	if !permits(v.viewer, e.GetMode(), e.GetUid(), e.GetGid(), MayRead) {
		if !did && !comesAndGoes[e.GetEvent()] {
			return nil
		}
		return &storepb.Event{Number: e.GetNumber(), Time: e.GetTime(), Event: e.GetEvent(), Path: e.GetPath()}
	}
	before := e.GetPrevious()
	if before == nil || permits(v.viewer, before.GetMode(), before.GetUid(), before.GetGid(), MayRead) {
		return e
	}
	return &storepb.Event{
		Number: e.GetNumber(), Time: e.GetTime(), Event: e.GetEvent(), Path: e.GetPath(), Token: e.GetToken(), Format: e.GetFormat(),
		Holder: e.GetHolder(), Host: e.GetHost(), Pid: e.GetPid(), By: e.GetBy(),
	}
}

// reachesBy tells whether the viewer could walk to a directory by the path that a name in it has.
func (v *view) reachesBy(dir ids.Inode, name string) bool {
	if !v.reaches(dir) {
		return false
	}
	way := "."
	if dir != RootIno {
		way = v.tree.path(v.tree.nameOf(dir))
	}
	return path.Dir(name) == way
}

func (r reader) viewOf(viewer *storepb.Viewer) *view {
	return &view{reader: r, viewer: viewer, dirs: make(map[ids.Inode]bool)}
}
