package namespace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// maxRecord bounds one message of a snapshot. The content, names and attributes of an inode fit.
const maxRecord = 1 << 20

// Restore reads a snapshot of [Snapshot.Write]. The error is codec.ErrCorrupt for damaged bytes. It is
// codec.ErrNewer or codec.ErrOlder if this program does not know all of them. It is the reader's error if
// reading failed.
func Restore(r io.Reader) (*Namespace, error) {
	in := &snapshotReader{in: bufio.NewReaderSize(failingReader{r}, 64<<10), sum: sha256.New()}
	ns, err := in.namespace()
	if failed := new(readError); errors.As(err, &failed) {
		err = failed.error
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return ns, nil
}

// readError is a failure to read, as opposed to damaged bytes.
type readError struct{ error }

// failingReader marks failures to read.
type failingReader struct{ io.Reader }

func (r failingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

// snapshotReader hashes exactly the bytes read from it.
type snapshotReader struct {
	in      *bufio.Reader
	sum     hash.Hash
	content []byte // of the last message
	newer   error  // reports unknown parts, after all messages are sound; nil: none
}

func (r *snapshotReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.sum.Write(p[:n])
	return n, err
}

func (r *snapshotReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.sum.Write([]byte{b})
	}
	return b, err
}

func (r *snapshotReader) namespace() (*Namespace, error) {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return nil, fmt.Errorf("not a lockfs snapshot: %w: %w", codec.ErrCorrupt, err)
	}
	if string(magic) != snapshotMagic {
		return nil, fmt.Errorf("not a lockfs snapshot: %w", codec.ErrCorrupt)
	}
	header := new(storepb.SnapshotHeader)
	if err := r.message(codec.CheckHeader, header); err != nil {
		return nil, fmt.Errorf("header: %w: %w", codec.ErrCorrupt, err)
	}
	switch version := header.GetVersion(); {
	case version > snapshotVersion:
		return nil, fmt.Errorf("version %d: %w", version, codec.ErrNewer)
	case version < snapshotVersion:
		return nil, fmt.Errorf("version %d: %w", version, codec.ErrOlder)
	}
	sum, ok := digest.SumOf(header.GetDigest())
	if !ok {
		return nil, fmt.Errorf("header: a digest of %d bytes: %w", len(header.GetDigest()), codec.ErrCorrupt)
	}
	ns := empty(digest.Restoring())
	ns.index, ns.time = ids.Index(header.GetIndex()), header.GetTime()
	ns.version = max(header.GetClusterVersion(), firstVersion)
	ns.tree.nextIno, ns.tree.nextCookie = ids.Inode(header.GetNextIno()), header.GetNextCookie()
	ns.sessions.most = header.GetMaxSessions()
	ns.budgets = budgets{
		locksPerUser: header.GetMaxLocksPerUser(), locksPerFile: header.GetMaxLocksPerFile(), sessionsPerHost: header.GetMaxSessionsPerHost(),
	}
	ns.tree.usage.limits = limits{
		maxInodes: header.GetMaxInodes(), maxBytes: header.GetMaxBytes(),
		maxInodesPerUser: header.GetMaxInodesPerUser(), maxBytesPerUser: header.GetMaxBytesPerUser(),
	}
	ns.locks.Begin(ns.index, ns.time)
	ns.trust.Begin(ns.index, ns.time)
	ns.trust.RestoreHeader(header.GetCluster(), header.GetEarlier(), ids.Index(header.GetShutOutIndex()))
	ns.events.last, ns.sessions.lockDelay = header.GetLastEvent(), header.GetLockDelay()
	ns.leases = header.GetLeases()
	restored := 0
	for record, err := range r.records(header.GetRecords()) {
		if err == nil && record != nil {
			err = ns.restoreRecord(record)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w: %w", restored, codec.ErrCorrupt, err)
		}
		restored++
	}
	want := r.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.in, got); err != nil {
		return nil, fmt.Errorf("checksum: %w: %w", codec.ErrCorrupt, err)
	}
	if !bytes.Equal(got, want) {
		return nil, fmt.Errorf("checksum differs: %w", codec.ErrCorrupt)
	}
	if _, err := r.in.ReadByte(); err == nil {
		return nil, fmt.Errorf("bytes after its end: %w", codec.ErrCorrupt)
	} else if err != io.EOF {
		return nil, err
	}
	if r.newer != nil {
		if err := ns.CheckVersion(version.Own()); err != nil { // its message says more
			return nil, err
		}
		return nil, r.newer
	}
	if err := ns.check(header.GetRecords()); err != nil {
		return nil, fmt.Errorf("%w: %w", codec.ErrCorrupt, err)
	}
	ns.restoreDueTimes()
	ns.tree.countAllBelow()
	ns.listLocked()
	ns.digest.Restored(sum)
	ns.tree.touched, ns.tree.changedNames = nil, nil
	return ns, nil
}

// message reads one message, and records unknown parts.
func (r *snapshotReader) message(check func([]byte) error, to proto.Message) error {
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	if size > maxRecord {
		return fmt.Errorf("a message of %d bytes", size)
	}
	r.content = slices.Grow(r.content[:0], int(size))[:size]
	if _, err := io.ReadFull(r, r.content); err != nil {
		return err
	}
	if err := proto.Unmarshal(r.content, to); err != nil {
		return err
	}
	if err := check(r.content); err != nil && r.newer == nil {
		r.newer = err
	}
	return nil
}

// recordBatch is the number of records in a batch.
const recordBatch = 256

// records reads this many records. From the first unknown record on, they are nil. The last one has an error
// if reading failed. Reading is half of the work of restoring, so it runs concurrently.
func (r *snapshotReader) records(count uint64) iter.Seq2[*storepb.Record, error] {
	type batch struct {
		records []*storepb.Record
		err     error
	}
	read := func(most uint64) (b batch) {
		for len(b.records) < int(most) && b.err == nil {
			record := new(storepb.Record)
			if b.err = r.message(codec.CheckRecord, record); r.newer != nil {
				record = nil
			}
			b.records = append(b.records, record)
		}
		return b
	}
	return func(yield func(*storepb.Record, error) bool) {
		batches, stop := make(chan batch, 4), make(chan struct{})
		go func() {
			defer close(batches)
			for left := count; left > 0; left -= min(left, recordBatch) {
				b := read(min(left, recordBatch))
				select {
				case batches <- b:
				case <-stop:
					return
				}
				if b.err != nil {
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for range batches { // until the reading goroutine has ended
			}
		}()
		for b := range batches {
			for i, record := range b.records {
				var err error
				if i == len(b.records)-1 {
					err = b.err
				}
				if !yield(record, err) {
					return
				}
			}
		}
	}
}

func (ns *Namespace) restoreRecord(record *storepb.Record) error {
	switch r := record.GetRecord().(type) {
	case *storepb.Record_Inode:
		ns.tree.putInode(inodeOf(r.Inode))
	case *storepb.Record_Entry:
		ns.tree.putEntry(ns.entryOf(r.Entry))
	case *storepb.Record_Orphan:
		ns.tree.putOrphan(orphanOf(r.Orphan))
	case *storepb.Record_Pin:
		return ns.restorePin(r.Pin)
	case *storepb.Record_Session:
		s := sessionOf(r.Session)
		ns.sessions.put(s)
		if s.endedIndex != 0 {
			ns.sessions.addEnded(s)
		}
	case *storepb.Record_Reply:
		ns.sessions.keepReply(&reply{
			session: ids.Session(r.Reply.GetSession()), seq: ids.Sequence(r.Reply.GetSeq()),
			result: r.Reply.GetResult(), undo: r.Reply.GetUndo(),
		})
	case *storepb.Record_Member:
		ns.members.Set(r.Member.GetId(), r.Member)
	case *storepb.Record_Rule:
		ns.rules.byPattern.Set(r.Rule.GetPattern(), r.Rule)
	case *storepb.Record_Host:
		ns.hosts.byName.Set(r.Host.GetName(), &host{
			bootID: r.Host.GetBootId(), sessions: int(r.Host.GetSessions()), since: r.Host.GetSince(), left: r.Host.GetLeft(),
			machine: r.Host.GetMachine(),
		})
	case *storepb.Record_Event:
		ns.events.keep(r.Event)
	case *storepb.Record_AdvisoryLock:
		ns.locks.Restore(r.AdvisoryLock, ns.sessions.hostOf(ids.Session(r.AdvisoryLock.GetSession())))
		if in, found := ns.tree.inode(ids.Inode(r.AdvisoryLock.GetIno())); found && !in.otherLocked {
			ns.noteKernelLock(in)
		}
	case *storepb.Record_EventCount:
		ns.events.counts.Set(r.EventCount.GetEvent(), r.EventCount.GetCount())
	case *storepb.Record_Quota:
		if r.Quota.GetDir() != 0 {
			ns.tree.quotas.byDir.Set(ids.Inode(r.Quota.GetDir()), r.Quota)
		} else {
			ns.tree.usage.quotas.Set(r.Quota.GetUid(), r.Quota)
		}
	case *storepb.Record_Alarm:
		ns.alarms.byNumber.Set(r.Alarm.GetNumber(), r.Alarm)
	case *storepb.Record_Authority:
		ns.trust.RestoreAuthority(r.Authority)
	case *storepb.Record_Token:
		ns.trust.RestoreToken(r.Token)
	case *storepb.Record_Admission:
		ns.trust.RestoreHost(r.Admission)
	case *storepb.Record_RevokedKey:
		ns.trust.RestoreRevoked(r.RevokedKey)
	default:
		return errors.New("of a kind that this program does not know")
	}
	return nil
}

func (ns *Namespace) restorePin(r *storepb.PinRecord) error {
	o, found := ns.tree.orphans.byIno.Get(ids.Inode(r.GetIno()))
	if !found {
		return fmt.Errorf("session %d keeps inode %d, which is no orphan", r.GetSession(), r.GetIno())
	}
	ns.tree.putPin(o, ids.Session(r.GetSession()), true)
	return nil
}

// restoreDueTimes computes the fields derived from facts and rules, and changes nothing else. A directory may
// be a lock because of the files in it, so files come first.
func (ns *Namespace) restoreDueTimes() {
	ns.restoreDue(false)
	ns.restoreDue(true)
}

func (ns *Namespace) restoreDue(dirs bool) {
	var judged []*entry
	ns.tree.byName.Scan(func(e *entry) bool {
		if in, found := ns.tree.inode(e.ino); found && in.isDir() == dirs {
			again := *e
			stale := again.stale
			ns.evaluate(&again, in)
			again.stale = stale
			if !again.sameEvaluation(e) {
				judged = append(judged, &again)
			}
		}
		return true
	})
	for _, e := range judged {
		ns.tree.putEntry(e)
	}
}
