package raftstore

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"

	"lockfs/raftstore/storepb"
)

// maxRecord bounds one message of a snapshot: content, names and attributes of an inode with room.
const maxRecord = 1 << 20

// Restore reads what [Snapshot.Write] wrote. Its error is ErrCorrupt when the bytes are damaged.
func Restore(r io.Reader) (*Namespace, error) {
	in := &snapshotReader{in: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	ns, err := in.namespace()
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return ns, nil
}

// snapshotReader hashes exactly the bytes that were taken from it.
type snapshotReader struct {
	in  *bufio.Reader
	sum hash.Hash
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
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != snapshotMagic {
		return nil, fmt.Errorf("not a snapshot of lockfs: %w", ErrCorrupt)
	}
	unmarshal := protodelim.UnmarshalOptions{MaxSize: maxRecord}
	header := new(storepb.SnapshotHeader)
	if err := unmarshal.UnmarshalFrom(r, header); err != nil {
		return nil, fmt.Errorf("header: %w: %w", ErrCorrupt, err)
	}
	if header.GetVersion() != snapshotVersion {
		return nil, fmt.Errorf("version %d, this program reads version %d", header.GetVersion(), snapshotVersion)
	}
	ns := emptyNamespace()
	ns.index, ns.time = header.GetIndex(), header.GetTime()
	ns.nextIno, ns.nextCookie = header.GetNextIno(), header.GetNextCookie()
	ns.maxInodes, ns.maxSessions = header.GetMaxInodes(), header.GetMaxSessions()
	for i := range header.GetRecords() {
		record := new(storepb.Record)
		if err := unmarshal.UnmarshalFrom(r, record); err != nil {
			return nil, fmt.Errorf("record %d: %w: %w", i, ErrCorrupt, err)
		}
		if err := ns.restoreRecord(record); err != nil {
			return nil, fmt.Errorf("record %d: %w: %w", i, ErrCorrupt, err)
		}
	}
	want := r.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.in, got); err != nil || !bytes.Equal(got, want) {
		return nil, fmt.Errorf("checksum differs: %w", ErrCorrupt)
	}
	if _, err := r.in.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("goes on after its end: %w", ErrCorrupt)
	}
	if err := ns.check(header.GetRecords()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return ns, nil
}

func (ns *Namespace) restoreRecord(record *storepb.Record) error {
	switch r := record.GetRecord().(type) {
	case *storepb.Record_Inode:
		ns.putInode(inodeOf(r.Inode))
	case *storepb.Record_Entry:
		ns.putEntry(&entry{
			parent: r.Entry.GetParent(), name: string(r.Entry.GetName()),
			ino: r.Entry.GetIno(), cookie: r.Entry.GetCookie(), made: r.Entry.GetMadeIndex(),
		})
	case *storepb.Record_Orphan:
		ns.putOrphan(&orphan{
			ino: r.Orphan.GetIno(), removedBy: r.Orphan.GetRemovedBy(), removedIndex: r.Orphan.GetRemovedIndex(),
			removedAt: r.Orphan.GetRemovedAt(), pinned: r.Orphan.GetPinned(),
		})
	case *storepb.Record_Session:
		ns.sessions.Set(r.Session.GetId(), sessionOf(r.Session))
		if r.Session.GetEndedIndex() != 0 {
			ns.endedSessions.Set(r.Session.GetEndedIndex(), r.Session.GetId())
		}
	case *storepb.Record_Reply:
		ns.keepReply(&reply{
			session: r.Reply.GetSession(), seq: r.Reply.GetSeq(),
			result: r.Reply.GetResult(), undo: r.Reply.GetUndo(),
		})
	case *storepb.Record_Member:
		ns.members.Set(r.Member.GetId(), r.Member)
	default:
		return errors.New("of a kind that this program does not know")
	}
	return nil
}

func inodeOf(r *storepb.InodeRecord) *inode {
	a := r.GetAttr()
	return &inode{
		ino: a.GetIno(), mode: a.GetMode(), nlink: a.GetNlink(), uid: a.GetUid(), gid: a.GetGid(),
		parent: r.GetParent(), atime: a.GetAtime(), mtime: a.GetMtime(), ctime: a.GetCtime(), btime: a.GetBtime(),
		version: a.GetVersion(), content: r.GetContent(), xattrs: r.GetXattrs(),
	}
}

func sessionOf(r *storepb.SessionRecord) *session {
	return &session{
		id: r.GetId(), host: r.GetHost(), bootID: r.GetBootId(), opened: r.GetOpened(), acked: r.GetAcked(),
		active: r.GetActive(), endedIndex: r.GetEndedIndex(), ended: r.GetEnded(),
	}
}
