package namespace

import (
	"bytes"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// setContent is the compare-and-set behind every write and truncation.
func (ns *Namespace) setContent(cmd *storepb.Command, op *storepb.SetContent) *storepb.Result {
	in, found := ns.tree.inode(ids.Inode(op.GetIno()))
	switch {
	case op.GetSession() != 0 && op.GetSession() != cmd.GetSession():
		return fail(storepb.Code_SESSION_LOST)
	case !found || !ns.tree.mayWrite(ids.Session(cmd.GetSession()), in):
		return fail(storepb.Code_STALE)
	case in.isDir():
		return fail(storepb.Code_IS_DIRECTORY)
	case !in.isFile():
		return fail(storepb.Code_INVALID)
	case len(op.GetContent()) > MaxContent:
		return fail(storepb.Code_FILE_TOO_BIG)
	case !mayKeep(op.GetFacts()):
		return fail(storepb.Code_INVALID)
	case in.version != ids.Index(op.GetIfVersion()):
		return fail(storepb.Code_CONFLICT)
	}
	name, isNamed := ns.tree.named(op.GetName(), in.ino)
	if refused := ns.refuseContent(cmd.GetCaller(), op, name, in); refused != nil {
		return refused
	}
	changed := *in
	changed.content, changed.evidence = op.GetContent(), op.GetFacts().GetEvidence()
	if refused := ns.refuseGrowth(in.bytes(), changed.bytes()); refused != nil {
		return refused
	}
	if refused := ns.roomForContent(cmd.GetCaller(), in, op); refused != nil {
		return refused
	}
	result := &storepb.Result{Attr: ns.replaceContent(cmd, in, op.GetContent(), op.GetFacts()).attr()}
	if isNamed {
		name, _ = ns.tree.entry(name.parent, []byte(name.name))
		result.Observations = ns.observations(name)
	}
	return result
}

func (ns *Namespace) refuseContent(by *storepb.Caller, op *storepb.SetContent, name *entry, in *inode) *storepb.Result {
	names := ns.tree.evaluatedNames(in)
	if in.manyNames && name != nil {
		names = []*entry{name}
	}
	for _, e := range names {
		var seen []*storepb.Observation
		if name != nil && e.parent == name.parent && e.name == name.name {
			seen = op.GetObservations()
		}
		if refused := ns.refuse(by, seen, e, in, overwrite); refused != nil {
			return refused
		}
	}
	return nil
}

func (ns *Namespace) roomForContent(by *storepb.Caller, in *inode, op *storepb.SetContent) *storepb.Result {
	changed := *in
	changed.content, changed.evidence = op.GetContent(), op.GetFacts().GetEvidence()
	more := changed.bytes() - in.bytes()
	var ofName func(*entry) int64
	all := more
	if factsOf(op.GetFacts()) != nil && !in.manyNames {
		ofName = func(e *entry) int64 {
			known := *e
			known.known = nil
			return known.bytes() + saidBytes(op.GetFacts()) - e.bytes()
		}
		for _, e := range ns.tree.namesOf(in.ino) {
			all += ofName(e)
		}
	}
	if code := ns.tree.usage.room(by, in.payer(), 0, all); code != storepb.Code_OK {
		return ns.tree.usage.refuse(code, in.payer())
	}
	return refuseBelow(ns.tree.roomToGrow(in, &changed, ofName))
}

func (ns *Namespace) replaceContent(cmd *storepb.Command, in *inode, content []byte, what *storepb.Facts) *inode {
	by, changed := cmd.GetCaller(), *in
	says := factsUnlessCounter(in, content, ns.factsNow(what))
	changed.evidence = what.GetEvidence()
	if in.manyNames {
		says, changed.evidence = nil, nil
	}
	changed.shared = bytes.HasPrefix(content, in.content) && (in.shared || len(in.content) > 0 && in.host.String() != by.GetHost())
	changed.facts, changed.gone, changed.host = says, in.goneStill(says), intern(by.GetHost())
	changed.content = content
	if ns.lockedByItsHolder(ids.Session(cmd.GetSession()), in, says) {
		changed.kernelLocked = true
	}
	if by.GetSquashed() {
		changed.mode = withoutSetID(by, in.mode, in.gid)
	}
	changed.version = ns.index
	changed.mtime, changed.ctime, changed.changed = ns.time, ns.time, ns.index
	ns.tree.putInode(&changed)
	ns.contentChanged(by, in, &changed)
	return &changed
}
