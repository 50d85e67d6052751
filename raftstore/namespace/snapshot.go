package namespace

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// snapshotVersion changes when an older program could misread a newer snapshot.
const snapshotVersion = 7

const snapshotMagic = "lockfs-snapshot\n"

// Snapshot is the state at one index. It may be written while the namespace changes.
type Snapshot struct {
	state state
	sum   digest.Sum // of the records
}

// Snapshot returns a copy in constant time, whatever the size of the state.
func (ns *Namespace) Snapshot() *Snapshot { return &Snapshot{ns.frozen(), ns.digest.Sum()} }

// Index returns the index of the last command in the snapshot.
func (s *Snapshot) Index() ids.Index { return s.state.index }

// Time returns the cluster time of that command.
func (s *Snapshot) Time() time.Time { return time.Unix(0, s.state.time) }

// Write writes the snapshot: a magic line, a header and records, each message after its length, then the
// SHA-256 of all. Equal states give equal bytes.
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

func (s *Snapshot) writeRecords(w *bufio.Writer) error {
	if _, err := w.WriteString(snapshotMagic); err != nil {
		return err
	}
	header := s.state.header()
	header.Version, header.Records, header.Digest = snapshotVersion, s.state.records(), s.sum.Bytes()
	marshal := protodelim.MarshalOptions{MarshalOptions: proto.MarshalOptions{Deterministic: true}}
	if _, err := marshal.MarshalTo(w, header); err != nil {
		return err
	}
	var err error
	s.state.eachRecord(func(record *storepb.Record) bool {
		_, err = marshal.MarshalTo(w, record)
		return err == nil
	})
	return err
}

func (ts *state) header() *storepb.SnapshotHeader {
	limits := &ts.tree.usage.limits
	return &storepb.SnapshotHeader{
		Index: uint64(ts.index), Time: ts.time, NextIno: uint64(ts.tree.nextIno), NextCookie: ts.tree.nextCookie,
		MaxInodes: limits.maxInodes, MaxSessions: ts.sessions.most, LastEvent: ts.events.last, LockDelay: ts.sessions.lockDelay,
		MaxBytes: limits.maxBytes, MaxInodesPerUser: limits.maxInodesPerUser, MaxBytesPerUser: limits.maxBytesPerUser,
		Cluster: ts.trust.Cluster(), Earlier: ts.trust.Earlier(), ShutOutIndex: uint64(ts.trust.LastRevocation()),
		ClusterVersion: ts.version, Leases: ts.leases,
		MaxLocksPerUser: ts.budgets.locksPerUser, MaxLocksPerFile: ts.budgets.locksPerFile, MaxSessionsPerHost: ts.budgets.sessionsPerHost,
	}
}

// all returns the whole state without the header, in an order for restoring.
func (ts *state) all() []digest.Table {
	tables := []digest.Table{
		ts.tree.inodes, ts.tree.byName, ts.tree.orphans.byIno, ts.tree.orphans.pins, ts.sessions.byID, ts.sessions.replies,
		ts.members, ts.rules.byPattern, ts.hosts.byName, ts.events.kept,
	}
	tables = append(tables, ts.locks.Tables()...)
	tables = append(tables, ts.events.counts, ts.alarms.byNumber, ts.tree.quotas.byDir, ts.tree.usage.quotas)
	return append(tables, ts.trust.Tables()...)
}

func (ts *state) records() uint64 {
	records := 0
	for _, table := range ts.all() {
		records += table.Len()
	}
	return uint64(records)
}

// eachRecord visits the whole state, in an order of the state alone.
func (ts *state) eachRecord(visit func(*storepb.Record) bool) {
	digest.Each(func(v digest.Value) bool {
		if e, isEntry := v.(*entry); isEntry {
			return visit(ts.entryRecord(e))
		}
		record := v.Record()
		if lock := record.GetAdvisoryLock(); lock != nil {
			ts.sessions.withHosts(lock)
		}
		return visit(record)
	}, ts.all()...)
}

// Hash is a pure function of the state: nodes with the same commands have the same hash. It follows each
// change of the state, so it takes a few milliseconds at most and misses memory errors.
func (ns *Namespace) Hash() string { return ns.hash(ns.digest.Sum()) }

// Hash returns the namespace's hash at the time of the snapshot.
func (s *Snapshot) Hash() string { return s.state.hash(s.sum) }

// Recomputed returns the hash of the records in memory. If it differs from [Snapshot.Hash], memory has
// changed by itself. It takes time in proportion to the state, and calls pause after every few thousand
// records.
func (s *Snapshot) Recomputed(pause func()) string {
	return s.state.hash(s.state.recomputed(pause))
}

func (ts *state) recomputed(pause func()) (sum digest.Sum) {
	visited := 0
	digest.Each(func(v digest.Value) bool {
		sum.Add(v.Record())
		if visited++; visited%recomputedAtOnce == 0 {
			pause()
		}
		return true
	}, ts.all()...)
	return sum
}

// Rehash sets the hash to that of the records in memory, and reports whether they were equal. Otherwise
// memory changed by itself, here or on the host that wrote a restored state.
func (ns *Namespace) Rehash() (was bool) {
	sum := ns.Snapshot().state.recomputed(func() {})
	was = sum == ns.digest.Sum()
	ns.digest.Restored(sum)
	return was
}

// recomputedAtOnce records take some milliseconds.
const recomputedAtOnce = 4096

func (ts *state) hash(sum digest.Sum) string {
	sum.Add(ts.header())
	return sum.String()
}
