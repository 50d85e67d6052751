package namespace

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// snapshotVersion changes when an older program could misread what a newer one writes.
const snapshotVersion = 5

const snapshotMagic = "lockfs-snapshot\n"

// Snapshot is the state as it was at one index. It may be written while the namespace goes on.
type Snapshot struct{ state tables }

// Snapshot is a copy in constant time, whatever the size of the state.
func (ns *Namespace) Snapshot() *Snapshot { return &Snapshot{ns.frozen()} }

// Index is the index of the last command in the snapshot.
func (s *Snapshot) Index() ids.Index { return s.state.index }

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
	ns := &s.state
	header := &storepb.SnapshotHeader{
		Version: snapshotVersion, Index: uint64(ns.index), Time: ns.time,
		NextIno: uint64(ns.tree.nextIno), NextCookie: ns.tree.nextCookie, MaxInodes: ns.tree.ledger.limits.maxInodes, MaxSessions: ns.sessions.most,
		Records: ns.records(), LastEvent: ns.events.last,
		LockDelay: ns.sessions.lockDelay, MaxBytes: ns.tree.ledger.limits.maxBytes,
		MaxInodesPerUser: ns.tree.ledger.limits.maxInodesPerUser, MaxBytesPerUser: ns.tree.ledger.limits.maxBytesPerUser,
		Cluster: ns.trust.Cluster(), ShutOutIndex: uint64(ns.trust.ShutOut()),
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
func (ts *tables) records() uint64 {
	return uint64(ts.tree.inodes.Len() + ts.tree.byName.Len() + ts.tree.orphans.byIno.Len() +
		ts.sessions.byID.Len() + ts.sessions.replies.Len() + ts.members.Len() +
		ts.locks.Len() + ts.trust.Len() + ts.rules.byPattern.Len() + ts.hosts.byName.Len() + ts.events.kept.Len() + ts.events.counts.Len())
}

// eachRecord visits the whole state, in an order that the state alone determines.
func (ts *tables) eachRecord(visit func(*storepb.Record) bool) {
	going := true
	put := func(record *storepb.Record) bool {
		going = visit(record)
		return going
	}
	for _, scan := range []func(){
		func() { ts.tree.inodes.Scan(func(_ ids.Inode, in *inode) bool { return put(in.record()) }) },
		func() { ts.tree.byName.Scan(func(e *entry) bool { return put(ts.entryRecord(e)) }) },
		func() { ts.tree.orphans.byIno.Scan(func(_ ids.Inode, o *orphan) bool { return put(o.record()) }) },
		func() { ts.sessions.byID.Scan(func(_ ids.Session, s *session) bool { return put(s.record()) }) },
		func() { ts.sessions.replies.Scan(func(r *reply) bool { return put(r.record()) }) },
		func() {
			ts.members.Scan(func(_ string, m *storepb.Member) bool {
				return put(&storepb.Record{Record: &storepb.Record_Member{Member: m}})
			})
		},
		func() {
			ts.rules.byPattern.Scan(func(_ string, m *storepb.Rule) bool {
				return put(&storepb.Record{Record: &storepb.Record_Rule{Rule: m}})
			})
		},
		func() {
			ts.hosts.byName.Scan(func(name string, h *host) bool {
				return put(&storepb.Record{Record: &storepb.Record_Host{Host: h.message(name)}})
			})
		},
		func() {
			ts.events.kept.Scan(func(_ uint64, m *storepb.Event) bool {
				return put(&storepb.Record{Record: &storepb.Record_Event{Event: m}})
			})
		},
		func() {
			ts.locks.Each(func(m *storepb.AdvisoryLock) bool {
				return put(&storepb.Record{Record: &storepb.Record_AdvisoryLock{AdvisoryLock: ts.sessions.withHosts(m)[0]}})
			})
		},
		func() {
			ts.events.counts.Scan(func(event string, count uint64) bool {
				return put(&storepb.Record{Record: &storepb.Record_EventCount{
					EventCount: &storepb.EventCount{Event: event, Count: count},
				}})
			})
		},
		func() { ts.trust.Each(put) },
	} {
		if going {
			scan()
		}
	}
}
