package namespace

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// snapshotVersion changes when an older program could misread what a newer one writes.
const snapshotVersion = 3

const snapshotMagic = "lockfs-snapshot\n"

// Snapshot is the state as it was at one index. It may be written while the namespace goes on.
type Snapshot struct{ ns *Namespace }

// Snapshot is a copy in constant time, whatever the size of the state.
func (ns *Namespace) Snapshot() *Snapshot {
	frozen := *ns
	frozen.inodes = ns.inodes.Copy()
	frozen.byName = ns.byName.Copy()
	frozen.byCookie = nil // restored from the entries
	frozen.orphans = ns.orphans.Copy()
	frozen.expiring = nil // restored from the orphans
	frozen.sessions = ns.sessions.Copy()
	frozen.endedSessions = nil // restored from the sessions
	frozen.replies = ns.replies.Copy()
	frozen.members = ns.members.Copy()
	frozen.rules, frozen.hosts = ns.rules.Copy(), ns.hosts.Copy()
	frozen.events, frozen.eventCounts = ns.events.Copy(), ns.eventCounts.Copy()
	frozen.locks = ns.locks.Frozen()
	frozen.removed = nil
	frozen.byIno, frozen.byDue, frozen.byProcess = nil, nil, nil // restored from entries and inodes
	frozen.byMaker, frozen.byPending, frozen.lockFiles, frozen.usedBy = nil, nil, nil, nil
	return &Snapshot{ns: &frozen}
}

// Index is the index of the last command in the snapshot.
func (s *Snapshot) Index() uint64 { return s.ns.index }

// Write writes the snapshot: a magic line, a header and records, each message with its length before
// it, then the SHA-256 of all that. Equal states give equal bytes.
func (s *Snapshot) Write(w io.Writer) error {
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	if err := s.writeRecords(buffered); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Hash is a pure function of the state: nodes that applied the same commands have the same one.
func (s *Snapshot) Hash() string {
	sum := sha256.New()
	buffered := bufio.NewWriterSize(sum, 64<<10)
	if err := s.writeRecords(buffered); err != nil {
		return ""
	}
	if err := buffered.Flush(); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func (s *Snapshot) writeRecords(w *bufio.Writer) error {
	if _, err := w.WriteString(snapshotMagic); err != nil {
		return err
	}
	ns := s.ns
	header := &storepb.SnapshotHeader{
		Version: snapshotVersion, Index: ns.index, Time: ns.time,
		NextIno: ns.nextIno, NextCookie: ns.nextCookie, MaxInodes: ns.limits.maxInodes, MaxSessions: ns.maxSessions,
		Records: ns.records(), LastEvent: ns.lastEvent,
		LockDelay: ns.lockDelay, MaxBytes: ns.limits.maxBytes,
		MaxInodesPerUser: ns.limits.maxInodesPerUser, MaxBytesPerUser: ns.limits.maxBytesPerUser,
	}
	marshal := protodelim.MarshalOptions{MarshalOptions: proto.MarshalOptions{Deterministic: true}}
	if _, err := marshal.MarshalTo(w, header); err != nil {
		return err
	}
	var err error
	ns.eachRecord(func(record *storepb.Record) bool {
		_, err = marshal.MarshalTo(w, record)
		return err == nil
	})
	return err
}

// records is how many eachRecord visits.
func (ns *Namespace) records() uint64 {
	return uint64(ns.inodes.Len() + ns.byName.Len() + ns.orphans.Len() +
		ns.sessions.Len() + ns.replies.Len() + ns.members.Len() +
		ns.locks.Len() + ns.rules.Len() + ns.hosts.Len() + ns.events.Len() + ns.eventCounts.Len())
}

// eachRecord visits the whole state, in an order that the state alone determines.
func (ns *Namespace) eachRecord(visit func(*storepb.Record) bool) {
	going := true
	put := func(record *storepb.Record) bool {
		going = visit(record)
		return going
	}
	for _, scan := range []func(){
		func() { ns.inodes.Scan(func(_ uint64, in *inode) bool { return put(in.record()) }) },
		func() { ns.byName.Scan(func(e *entry) bool { return put(ns.entryRecord(e)) }) },
		func() { ns.orphans.Scan(func(_ uint64, o *orphan) bool { return put(o.record()) }) },
		func() { ns.sessions.Scan(func(_ uint64, s *session) bool { return put(s.record()) }) },
		func() { ns.replies.Scan(func(r *reply) bool { return put(r.record()) }) },
		func() {
			ns.members.Scan(func(_ string, m *storepb.Member) bool {
				return put(&storepb.Record{Record: &storepb.Record_Member{Member: m}})
			})
		},
		func() {
			ns.rules.Scan(func(_ string, m *storepb.Rule) bool {
				return put(&storepb.Record{Record: &storepb.Record_Rule{Rule: m}})
			})
		},
		func() {
			ns.hosts.Scan(func(name string, h *host) bool {
				return put(&storepb.Record{Record: &storepb.Record_Host{Host: h.message(name)}})
			})
		},
		func() {
			ns.events.Scan(func(_ uint64, m *storepb.Event) bool {
				return put(&storepb.Record{Record: &storepb.Record_Event{Event: m}})
			})
		},
		func() {
			ns.locks.Each(func(m *storepb.AdvisoryLock) bool {
				return put(&storepb.Record{Record: &storepb.Record_AdvisoryLock{AdvisoryLock: ns.withHosts(m)[0]}})
			})
		},
		func() {
			ns.eventCounts.Scan(func(event string, count uint64) bool {
				return put(&storepb.Record{Record: &storepb.Record_EventCount{
					EventCount: &storepb.EventCount{Event: event, Count: count},
				}})
			})
		},
	} {
		if going {
			scan()
		}
	}
}

func (in *inode) record() *storepb.Record {
	record := &storepb.InodeRecord{
		Attr: in.attr(), Parent: in.parent, Content: in.content, Xattrs: in.xattrs,
		Facts: in.facts.message(), Host: in.host.String(), Unlisted: in.unlisted,
		Evidence: in.evidence, KernelLocked: in.kernelLocked, ChangedIndex: in.changed,
	}
	if in.gone != nil {
		record.Gone, record.GoneSince = in.gone.reason, in.gone.since
	}
	return &storepb.Record{Record: &storepb.Record_Inode{Inode: record}}
}

// entryRecord leaves out what follows from the inode and the rules.
func (ns *Namespace) entryRecord(e *entry) *storepb.Record {
	record := &storepb.EntryRecord{
		Parent: e.parent, Name: []byte(e.name), Ino: e.ino, Cookie: e.cookie, MadeIndex: e.made,
		Token: e.token, Acquired: e.acquired, Announced: e.announced,
		Exclusive: e.exclusive, Pending: e.pending.record(), Maker: e.maker.message(),
	}
	if in, found := ns.inodes.Get(e.ino); !found || in.facts == nil {
		record.Known = e.known.message()
	}
	if s := e.stale; s != nil {
		record.Stale, record.StaleSince, record.StaleByTime, record.StaleOfMaker = s.reason, s.since, s.byTime, s.ofMaker
	}
	return &storepb.Record{Record: &storepb.Record_Entry{Entry: record}}
}

func (p *pending) record() *storepb.PendingRecord {
	if p == nil {
		return nil
	}
	return &storepb.PendingRecord{Until: p.until, By: p.by}
}

func (o *orphan) record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Orphan{Orphan: &storepb.OrphanRecord{
		Ino: o.ino, RemovedBy: o.removedBy, RemovedIndex: o.removedIndex, RemovedAt: o.removedAt, Pinned: o.pinned,
		TakenBack: o.takenBack,
	}}}
}

func (s *session) record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Session{Session: s.message()}}
}

func (s *session) message() *storepb.SessionRecord {
	return &storepb.SessionRecord{
		Id: s.id, Host: s.host, BootId: s.bootID, Opened: s.opened, Acked: s.acked, Active: s.active,
		EndedIndex: s.endedIndex, Ended: s.ended, Started: s.started, NoLockDelay: s.noDelay, Machine: s.machine,
		PidNamespace: s.namespace,
	}
}

func (r *reply) record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Reply{Reply: &storepb.ReplyRecord{
		Session: r.session, Seq: r.seq, Result: r.result, Undo: r.undo,
	}}}
}
