package namespace

import (
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Record implements digest.Value.
func (in *inode) Record() *storepb.Record {
	record := &storepb.InodeRecord{
		Attr: in.attr(), Parent: uint64(in.parent), Content: in.content, Xattrs: in.xattrs,
		Facts: in.facts.message(), Host: in.host.String(), Unlisted: in.unlisted,
		Evidence: in.evidence, KernelLocked: in.kernelLocked, OtherLocked: in.otherLocked, ChangedIndex: uint64(in.changed), Shared: in.shared, ReserveHost: in.reserve.String(), BudgetUid: in.budgetUID,
		ManyNames: in.manyNames,
	}
	if in.gone != nil {
		record.Gone, record.GoneSince, record.GoneByCrash = in.gone.reason, in.gone.since, in.gone.byCrash
	}
	return &storepb.Record{Record: &storepb.Record_Inode{Inode: record}}
}

// Record implements digest.Value. It leaves out fields derived from the rules.
func (e *entry) Record() *storepb.Record {
	record := &storepb.EntryRecord{
		Parent: uint64(e.parent), Name: []byte(e.name), Ino: uint64(e.ino), Cookie: e.cookie, MadeIndex: uint64(e.createdAt),
		Token: uint64(e.token), Acquired: e.acquired, ContentAt: e.contentAt, Announced: e.announced,
		Exclusive: e.exclusive, Pending: e.pending.record(), Maker: e.creator.message(),
		Says: e.says.name, DirectorySays: e.says.directory, MadeOn: e.creatorHost.String(), MadeBy: e.creatorPID,
	}
	record.Known = e.known.message()
	if s := e.stale; s != nil {
		record.Stale, record.StaleSince, record.StaleByTime, record.StaleOfMaker = s.reason, s.since, s.byTime, s.ofCreator
	}
	return &storepb.Record{Record: &storepb.Record_Entry{Entry: record}}
}

// sameRecord reports whether two entries differ only in fields derived from the rules.
func sameRecord(a, b *entry) bool {
	judged := *a
	judged.lock, judged.due, judged.format, judged.guarded, judged.ruled, judged.timeout = b.lock, b.due, b.format, b.guarded, b.ruled, b.timeout
	return judged == *b
}

// entryRecord also leaves out the facts of the inode.
func (ts *state) entryRecord(e *entry) *storepb.Record {
	record := e.Record()
	if in, found := ts.tree.inode(e.ino); found && in.facts != nil {
		record.GetEntry().Known = nil
	}
	return record
}

func (p *pending) record() *storepb.PendingRecord {
	if p == nil {
		return nil
	}
	return &storepb.PendingRecord{Until: p.until, By: p.by}
}

// Record implements digest.Value.
func (o *orphan) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Orphan{Orphan: &storepb.OrphanRecord{
		Ino: uint64(o.ino), RemovedBy: uint64(o.removedBy), RemovedIndex: uint64(o.removedIndex), RemovedAt: o.removedAt,
		TakenBack: o.takenBack, Data: o.data,
	}}}
}

// Record implements digest.Value.
func (p pin) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Pin{Pin: &storepb.PinRecord{Ino: uint64(p.ino), Session: uint64(p.session)}}}
}

// Record implements digest.Value.
func (s *session) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Session{Session: s.message()}}
}

// Record implements digest.Value.
func (r *reply) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Reply{Reply: &storepb.ReplyRecord{
		Session: uint64(r.session), Seq: uint64(r.seq), Result: r.result, Undo: r.undo,
	}}}
}

func inodeOf(r *storepb.InodeRecord) *inode {
	a := r.GetAttr()
	in := &inode{
		ino: ids.Inode(a.GetIno()), mode: a.GetMode(), nlink: a.GetNlink(), uid: a.GetUid(), gid: a.GetGid(),
		parent: ids.Inode(r.GetParent()), atime: a.GetAtime(), mtime: a.GetMtime(), ctime: a.GetCtime(), btime: a.GetBtime(),
		version: ids.Index(a.GetVersion()), content: r.GetContent(), xattrs: r.GetXattrs(),
		facts: factsOf(r.GetFacts()), host: intern(r.GetHost()), unlisted: r.GetUnlisted(),
		evidence: r.GetEvidence(), kernelLocked: r.GetKernelLocked(), otherLocked: r.GetOtherLocked(), changed: ids.Index(r.GetChangedIndex()), shared: r.GetShared(), manyNames: r.GetManyNames(), reserve: intern(r.GetReserveHost()), budgetUID: r.GetBudgetUid(),
	}
	if r.GetGone() != "" && in.facts != nil && in.facts.process != nil {
		in.gone = &staleness{reason: r.GetGone(), since: r.GetGoneSince(), byCrash: r.GetGoneByCrash()}
	}
	return in
}

// entryOf needs the inode, which comes earlier in a snapshot.
func (ts *state) entryOf(r *storepb.EntryRecord) *entry {
	e := &entry{
		parent: ids.Inode(r.GetParent()), name: string(r.GetName()), ino: ids.Inode(r.GetIno()), cookie: r.GetCookie(), createdAt: ids.Index(r.GetMadeIndex()),
		token: ids.Token(r.GetToken()), acquired: r.GetAcquired(), contentAt: r.GetContentAt(), announced: r.GetAnnounced(), known: factsOf(r.GetKnown()),
		exclusive: r.GetExclusive(), pending: pendingOf(r.GetPending()), creator: creatorFrom(r.GetMaker()),
		says: nameEvidence{r.GetSays(), r.GetDirectorySays()}, creatorHost: intern(r.GetMadeOn()), creatorPID: r.GetMadeBy(),
	}
	if in, found := ts.tree.inode(e.ino); found && in.facts != nil {
		e.known = in.facts
	}
	if r.GetStale() != "" {
		e.stale = &staleness{reason: r.GetStale(), since: r.GetStaleSince(), byTime: r.GetStaleByTime(), ofCreator: r.GetStaleOfMaker()}
	}
	return e
}

func pendingOf(r *storepb.PendingRecord) *pending {
	if r == nil {
		return nil
	}
	return &pending{until: r.GetUntil(), by: r.GetBy()}
}

func sessionOf(r *storepb.SessionRecord) *session {
	return &session{
		id: ids.Session(r.GetId()), host: r.GetHost(), bootID: r.GetBootId(), opened: r.GetOpened(), acked: ids.Sequence(r.GetAcked()),
		active: ids.Index(r.GetActive()), endedIndex: ids.Index(r.GetEndedIndex()), ended: r.GetEnded(), started: r.GetStarted(),
		noDelay: r.GetNoLockDelay(), machine: r.GetMachine(), namespace: r.GetPidNamespace(), versions: versionsOf(r),
	}
}
