package namespace

import (
	"path"
	"slices"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Permissions of a user on an inode, as in each of the three parts of its mode.
const (
	MayRead   = 0o4
	MayWrite  = 0o2
	MaySearch = 0o1 // a directory
)

// Permits reports whether a viewer certainly has permissions on an inode, by the rules of the kernel. Root
// has all. The owner has those of the owner, and a member of the group those of the group, even if others
// have more. If some groups of the viewer are unknown, it needs the permissions both as a member and as
// another user. nil has none.
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

// view selects one viewer's part of the answer to a query. It checks directories shared by many locks once.
type view struct {
	queryEngine
	viewer *storepb.Viewer
	dirs   map[ids.Inode]bool // whether the viewer could reach the directory and look up names in it
}

func (v *view) ofRoot() bool { return v.viewer != nil && v.viewer.GetUid() == 0 }

// canSee reports whether the viewer could reach a directory from the root and look up names in it.
func (v *view) canSee(dir ids.Inode) bool {
	may, decided := v.dirs[dir]
	if !decided {
		in, code := v.tree.directory(dir)
		may = code == storepb.Code_OK && v.permits(in, MaySearch) && (dir == RootIno || v.canSee(in.parent))
		v.dirs[dir] = may
	}
	return may
}

func (v *view) permits(in *inode, need uint32) bool {
	return permits(v.viewer, in.mode, in.uid, in.gid, need)
}

// lock returns the visible part of a name; nil: none. Without read permission, the viewer sees the result of
// stat(2), and the time of the lock's acquisition.
func (v *view) lock(e *entry, in *inode) *storepb.Lock {
	switch {
	case !v.canSee(e.parent):
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

// advisories reports whether the viewer may see the locks and requests of a file: it needs read permission.
// Only root sees those of a file without a name.
func (v *view) advisories(ino ids.Inode) bool {
	if v.ofRoot() {
		return true
	}
	e := v.tree.nameOf(ino)
	if e == nil || !v.canSee(e.parent) {
		return false
	}
	in, found := v.tree.inode(ino)
	return found && v.permits(in, MayRead)
}

// hiddenEvents are the events that stat(2) at the right moment would show.
var hiddenEvents = map[string]bool{eventAcquired: true, eventReleased: true, eventRemoved: true}

// event returns the visible part of an event; nil: none. The viewer must be able to reach the same directory
// by the same path today, and needs the permissions of the file at that time. A user who creates the path
// again gains neither. If the directory is gone or moved, only root and the user who acted see the event.
// Hashes are for root: with those of adjacent events, a user could guess a hidden event.
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

// part returns the event for other users than root.
func (v *view) part(e *storepb.Event) *storepb.Event {
	if len(e.GetPath()) == 0 {
		return e // events of hosts are for every user
	}
	did := e.GetBy() != nil && v.viewer != nil && e.GetBy().GetUid() == v.viewer.GetUid()
	if !did && !v.canSeeVia(ids.Inode(e.GetParent()), string(e.GetPath())) {
		return nil
	}
	if !permits(v.viewer, e.GetMode(), e.GetUid(), e.GetGid(), MayRead) {
		if !did && !hiddenEvents[e.GetEvent()] {
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

func (v *view) canSeeVia(dir ids.Inode, name string) bool {
	if !v.canSee(dir) {
		return false
	}
	way := "."
	if dir != RootIno {
		way = v.tree.path(v.tree.nameOf(dir))
	}
	return path.Dir(name) == way
}

func (r queryEngine) viewOf(viewer *storepb.Viewer) *view {
	return &view{queryEngine: r, viewer: viewer, dirs: make(map[ids.Inode]bool)}
}
