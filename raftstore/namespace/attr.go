package namespace

import (
	"syscall"

	"lockfs/raftstore/storepb"
)

func (ns *Namespace) setAttr(op *storepb.SetAttr) *storepb.Result {
	in, found := ns.inodes.Get(op.GetIno())
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	if op.Mode != nil && op.GetMode()&^modeBits != 0 {
		return fail(storepb.Code_INVALID)
	}
	changed := *in
	if op.Mode != nil {
		changed.mode = in.mode&syscall.S_IFMT | op.GetMode()
	}
	if op.Uid != nil {
		changed.uid = op.GetUid()
	}
	if op.Gid != nil {
		changed.gid = op.GetGid()
	}
	changed.atime = newTime(in.atime, op.Atime, op.GetAtimeNow(), ns.time)
	changed.mtime = newTime(in.mtime, op.Mtime, op.GetMtimeNow(), ns.time)
	changed.ctime, changed.changed = ns.time, ns.index
	ns.putInode(&changed)
	if changed.mtime != in.mtime && ns.rules.Len() > 0 {
		ns.judgeAgain(ns.namesOf(in.ino)...)
	}
	return &storepb.Result{Attr: changed.attr()}
}

func newTime(old int64, explicit *int64, useNow bool, now int64) int64 {
	switch {
	case useNow:
		return now
	case explicit != nil:
		return *explicit
	}
	return old
}

// setContent is the compare-and-set that every write and truncation is made of.
func (ns *Namespace) setContent(cmd *storepb.Command, op *storepb.SetContent) *storepb.Result {
	in, found := ns.inodes.Get(op.GetIno())
	switch {
	case op.GetSession() != 0 && op.GetSession() != cmd.GetSession():
		return fail(storepb.Code_SESSION_LOST)
	case !found || !ns.mayWrite(cmd.GetSession(), in):
		return fail(storepb.Code_STALE)
	case in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	case !in.isFile():
		return fail(storepb.Code_INVALID)
	case len(op.GetContent()) > MaxContent:
		return fail(storepb.Code_FILE_TOO_BIG)
	case tooManyFacts(op.GetFacts()):
		return fail(storepb.Code_INVALID)
	case in.version != op.GetIfVersion():
		return fail(storepb.Code_CONFLICT)
	}
	name, isNamed := ns.named(op.GetName(), in.ino)
	if refused := ns.refuseContent(cmd.GetCaller(), op, name, in); refused != nil {
		return refused
	}
	if code := ns.roomForContent(cmd.GetCaller(), in, op); code != storepb.Code_OK {
		return fail(code)
	}
	result := &storepb.Result{Attr: ns.replaceContent(cmd.GetCaller(), in, op.GetContent(), op.GetFacts()).attr()}
	if isNamed {
		name, _ = ns.entry(name.parent, []byte(name.name))
		result.Looks = ns.looksAt(name)
	}
	return result
}

// refuseContent asks the guards of all names, and compares what the caller saw under the one it used.
func (ns *Namespace) refuseContent(by *storepb.Caller, op *storepb.SetContent, name *entry, in *inode) *storepb.Result {
	for _, e := range ns.namesOf(in.ino) {
		var looks []*storepb.Look
		if name != nil && e.parent == name.parent && e.name == name.name {
			looks = op.GetLooks()
		}
		if refused := ns.refuse(by, looks, e, in, overwrite); refused != nil {
			return refused
		}
	}
	return nil
}

// roomForContent asks for room for what a content, and what its names then know of its holder, are larger.
func (ns *Namespace) roomForContent(by *storepb.Caller, in *inode, op *storepb.SetContent) storepb.Code {
	changed := *in
	changed.content, changed.evidence = op.GetContent(), op.GetFacts().GetEvidence()
	more := changed.bytes() - in.bytes()
	if factsOf(op.GetFacts()) != nil {
		for _, e := range ns.namesOf(in.ino) {
			known := *e
			known.known = nil
			more += known.bytes() + saidBytes(op.GetFacts()) - e.bytes()
		}
	}
	return ns.room(by, in.uid, 0, more)
}

func (ns *Namespace) replaceContent(by *storepb.Caller, in *inode, content []byte, what *storepb.Facts) *inode {
	changed := *in
	says := asCounted(in, content, ns.factsNow(what))
	changed.evidence = what.GetEvidence()
	changed.facts, changed.gone, changed.host = says, in.goneStill(says), share(by.GetHost())
	changed.content = content
	changed.version = ns.index
	changed.mtime, changed.ctime, changed.changed = ns.time, ns.time, ns.index
	ns.putInode(&changed)
	ns.contentChanged(by, in, &changed)
	return &changed
}
