package namespace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protodelim"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// small is a namespace with one of everything that a snapshot holds.
func small(tb testing.TB) *Namespace {
	tr := newDriver(tb)
	dir := tr.mkdir(RootIno, "dir")
	ino := tr.file(dir, "f")
	tr.write(here, ino, "one").ok()
	tr.do(here, opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.a"), Value: []byte("v")})).ok()
	tr.renameNoReplace(dir, "f", RootIno, "g").ok()
	for i, name := range []string{"x", "y"} {
		gone := tr.file(RootIno, name)
		tr.unlink(here, RootIno, name).ok()
		if i == 0 {
			tr.do(here, opOf(&storepb.Pin{Ino: gone})).ok()
		}
	}
	tr.do(here, opOf(&storepb.SetMember{Member: &storepb.Member{Id: "i", Name: "n"}})).ok()
	tr.rule(&storepb.Rule{Pattern: "k*", OnStale: "keep"}).ok()
	tr.take(here, "kept", pidFacts(storepb.Format_PID, processOf(1)))
	tr.gone(here, processOf(1)).ok()
	tr.take(there, "later", factsFor(storepb.Format_TOWER, "x", 1<<60))
	tr.fill(there, RootIno, "later", nil).ok()
	tr.giveUp(there)
	tr.trust()
	return tr.ns
}

// TestRestoreRefusesDamage flips and cuts at every byte.
func TestRestoreRefusesDamage(t *testing.T) {
	whole := snapshotBytes(t, small(t).Snapshot())
	restored(t, whole)
	versionAt := len(snapshotMagic) + 2
	for i := range whole {
		_, err := Restore(bytes.NewReader(whole[:i]))
		require.ErrorIs(t, err, codec.ErrCorrupt, "the first %d of %d bytes", i, len(whole))
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			damaged := bytes.Clone(whole)
			damaged[i] ^= flip
			_, err := Restore(bytes.NewReader(damaged))
			require.Error(t, err, "byte %d of %d ^ %#x", i, len(whole), flip)
			if i != versionAt { // another version is refused before anything else is believed
				require.ErrorIs(t, err, codec.ErrCorrupt, "byte %d of %d ^ %#x", i, len(whole), flip)
			}
		}
	}
	_, err := Restore(bytes.NewReader(append(bytes.Clone(whole), 0)))
	require.ErrorIs(t, err, codec.ErrCorrupt, "a byte too many")
}

// TestRestoreStopsReading has records that cannot be understood among many, which are read ahead: nothing is read any more
// once the error is known.
func TestRestoreStopsReading(t *testing.T) {
	const count = 20 * recordBatch
	for _, bad := range []int{0, recordBatch, count / 2, count - 1} {
		var records []*storepb.Record
		for i := range count {
			records = append(records, (&orphan{ino: ids.Inode(i)}).Record())
		}
		records[bad] = new(storepb.Record)
		from := &untilDone{Reader: bytes.NewReader(signed(t, &storepb.SnapshotHeader{Version: snapshotVersion, Digest: make([]byte, 32), Records: count}, records))}
		_, err := Restore(from)
		from.done.Store(true)
		require.ErrorContains(t, err, fmt.Sprintf("record %d: ", bad))
		require.ErrorIs(t, err, codec.ErrCorrupt)
		runtime.Gosched()
		require.False(t, from.late.Load())
	}
}

// untilDone notices who reads too late.
type untilDone struct {
	io.Reader
	done, late atomic.Bool
}

func (r *untilDone) Read(p []byte) (int, error) {
	if r.done.Load() {
		r.late.Store(true)
	}
	return r.Reader.Read(p)
}

// TestRestoreTellsWhyItCannotRead has the disk fail at every byte: that says nothing about what is there.
func TestRestoreTellsWhyItCannotRead(t *testing.T) {
	whole := snapshotBytes(t, small(t).Snapshot())
	for i := range len(whole) + 1 {
		_, err := Restore(io.MultiReader(bytes.NewReader(whole[:i]), iotest.ErrReader(syscall.EIO)))
		require.ErrorIs(t, err, syscall.EIO, "after %d bytes", i)
		require.NotErrorIs(t, err, codec.ErrCorrupt, "after %d bytes", i)
	}
}

func TestRestoreRefusesOtherVersion(t *testing.T) {
	for version, why := range map[uint32]error{snapshotVersion + 1: codec.ErrNewer, snapshotVersion - 1: codec.ErrOlder} {
		_, err := Restore(bytes.NewReader(signed(t, &storepb.SnapshotHeader{Version: version}, nil)))
		require.ErrorContains(t, err, fmt.Sprintf("version %d", version))
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, codec.ErrCorrupt)
	}
}

// signed writes records as a snapshot with a right checksum, whatever they say.
func signed(tb testing.TB, header *storepb.SnapshotHeader, records []*storepb.Record) []byte {
	var out bytes.Buffer
	out.WriteString(snapshotMagic)
	_, err := protodelim.MarshalTo(&out, header)
	require.NoError(tb, err)
	for _, record := range records {
		_, err := protodelim.MarshalTo(&out, record)
		require.NoError(tb, err)
	}
	sum := sha256.Sum256(out.Bytes())
	return append(out.Bytes(), sum[:]...)
}

// recordsOf reads a snapshot without believing or refusing anything.
func recordsOf(tb testing.TB, data []byte) (*storepb.SnapshotHeader, []*storepb.Record) {
	in := bufio.NewReader(bytes.NewReader(data[len(snapshotMagic):]))
	header := new(storepb.SnapshotHeader)
	require.NoError(tb, protodelim.UnmarshalFrom(in, header))
	var records []*storepb.Record
	for range header.GetRecords() {
		record := new(storepb.Record)
		require.NoError(tb, protodelim.UnmarshalFrom(in, record))
		records = append(records, record)
	}
	return header, records
}

func inodeRecord(ino uint64, mode, nlink uint32, parent uint64) *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Inode{Inode: &storepb.InodeRecord{
		Attr: &storepb.Attr{Ino: ino, Mode: mode, Nlink: nlink}, Parent: parent,
	}}}
}

func entryRecord(parent uint64, name string, ino, cookie uint64) *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Entry{Entry: &storepb.EntryRecord{
		Parent: parent, Name: []byte(name), Ino: ino, Cookie: cookie,
	}}}
}

const (
	someDir  = syscall.S_IFDIR | 0o755
	someFile = syscall.S_IFREG | 0o644
)

// TestRestoreRefusesContradictions: what Apply and Query rely on is checked, not believed.
func TestRestoreRefusesContradictions(t *testing.T) {
	root := inodeRecord(RootIno, someDir, 2, RootIno)
	file := inodeRecord(2, someFile, 1, 0)
	gone := inodeRecord(2, someFile, 0, 0)
	heldFile := inodeRecord(2, someFile, 1, 0)
	heldFile.GetInode().Facts = towerFacts("x")
	dir := func(ino, parent uint64) *storepb.Record { return inodeRecord(ino, someDir, 2, parent) }
	orphaned := func(ino, index uint64) *storepb.Record {
		return (&orphan{ino: ids.Inode(ino), removedIndex: ids.Index(index)}).Record()
	}
	answer := func(session, seq uint64, result *storepb.Result) *storepb.Record {
		return (&reply{session: ids.Session(session), seq: ids.Sequence(seq), result: result}).Record()
	}
	hosted := func(sessions int) *storepb.Record {
		return &storepb.Record{Record: &storepb.Record_Host{Host: (&host{sessions: sessions}).message("")}}
	}
	ruled := func(rule *storepb.Rule) *storepb.Record {
		return &storepb.Record{Record: &storepb.Record_Rule{Rule: rule}}
	}
	deep := []*storepb.Record{root}
	for ino := uint64(2); ino <= MaxDepth+2; ino++ {
		deep = append(deep, dir(ino, ino-1), entryRecord(ino-1, "d", ino, ino+1))
	}
	for name, records := range map[string][]*storepb.Record{
		"nothing":                      nil,
		"root is a file":               {inodeRecord(RootIno, someFile, 1, 0)},
		"root is removed":              {inodeRecord(RootIno, someDir, 0, RootIno), file, entryRecord(RootIno, "f", 2, 3)},
		"inode 0":                      {root, inodeRecord(0, someFile, 1, 0)},
		"inode without attributes":     {root, {Record: &storepb.Record_Inode{Inode: &storepb.InodeRecord{}}}},
		"inode still to be given":      {root, inodeRecord(500, someFile, 1, 0)},
		"inode twice":                  {root, file, file, entryRecord(RootIno, "f", 2, 3)},
		"entry of no inode":            {root, entryRecord(RootIno, "f", 2, 3)},
		"entry in no directory":        {root, file, entryRecord(3, "f", 2, 3)},
		"entry in a file":              {root, file, entryRecord(2, "f", 2, 3)},
		"entry of the root":            {root, entryRecord(RootIno, "f", RootIno, 3)},
		"entry of an orphan":           {root, gone, orphaned(2, 1), entryRecord(RootIno, "f", 2, 3)},
		"entry before its inode":       {root, entryRecord(RootIno, "f", 2, 3), heldFile},
		"entry with a bad name":        {root, file, entryRecord(RootIno, "a/b", 2, 3)},
		"entry without a cookie":       {root, file, entryRecord(RootIno, "f", 2, 0)},
		"cookie still to be given":     {root, file, entryRecord(RootIno, "f", 2, 500)},
		"cookie twice":                 {root, file, entryRecord(RootIno, "f", 2, 3), entryRecord(RootIno, "g", 2, 3)},
		"name twice":                   {root, file, entryRecord(RootIno, "f", 2, 3), entryRecord(RootIno, "f", 2, 4)},
		"directory with a wrong place": {root, dir(2, RootIno), dir(3, RootIno), entryRecord(2, "d", 3, 3)},
		"directory in itself":          {root, dir(2, 2), entryRecord(2, "d", 2, 3)},
		"directories in a circle":      {root, dir(2, 3), dir(3, 2), entryRecord(2, "d", 3, 3), entryRecord(3, "d", 2, 4)},
		"directory in nothing":         {root, dir(2, 77)},
		"tree too deep":                deep,
		"orphan of no inode":           {root, orphaned(2, 1)},
		"orphan with a name":           {root, file, entryRecord(RootIno, "f", 2, 3), orphaned(2, 1)},
		"orphan twice":                 {root, gone, orphaned(2, 1), orphaned(2, 2)},
		"reply of no session":          {root, answer(1, 1, &storepb.Result{})},
		"reply that says nothing":      {root, hosted(1), (&session{id: 1}).Record(), answer(1, 1, nil)},
		"two ends at one index":        {root, (&session{id: 1, endedIndex: 1}).Record(), (&session{id: 2, endedIndex: 1}).Record()},
		"session of no host":           {root, (&session{id: 1}).Record()},
		"host without its session":     {root, hosted(1)},
		"host without its two":         {root, hosted(2), (&session{id: 1}).Record()},
		"host of an ended session":     {root, hosted(1), (&session{id: 1, endedIndex: 1}).Record()},
		"host twice":                   {root, hosted(0), hosted(0)},
		"rule that is none":            {root, ruled(&storepb.Rule{Pattern: "["})},
		"rule twice":                   {root, ruled(&storepb.Rule{Pattern: "*"}), ruled(&storepb.Rule{Pattern: "*"})},
		"event still to come":          {root, {Record: &storepb.Record_Event{Event: &storepb.Event{Number: 1}}}},
		"record of no kind":            {root, {}},
	} {
		header := &storepb.SnapshotHeader{
			Version: snapshotVersion, Digest: make([]byte, 32), NextIno: 200, NextCookie: 200, MaxInodes: 100, Records: uint64(len(records)),
		}
		_, err := Restore(bytes.NewReader(signed(t, header, records)))
		require.ErrorIs(t, err, codec.ErrCorrupt, "%s", name)
	}
}

func resigned(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

// TestRestoreTakesWhatFits, so that the contradictions are what is refused.
func TestRestoreTakesWhatFits(t *testing.T) {
	records := []*storepb.Record{
		inodeRecord(RootIno, someDir, 2, RootIno), inodeRecord(2, someFile, 1, 0), inodeRecord(3, someFile, 0, 0),
		inodeRecord(4, someFile, 0, 0), entryRecord(RootIno, "f", 2, 3),
		(&orphan{ino: 3, removedIndex: 1}).Record(), (&orphan{ino: 4, removedIndex: 1}).Record(),
		{Record: &storepb.Record_Host{Host: (&host{sessions: 1}).message("")}}, (&session{id: 1}).Record(),
		(&session{id: 2, endedIndex: 1}).Record(),
		(&reply{session: 1, seq: 1, result: &storepb.Result{}}).Record(),
		{Record: &storepb.Record_Rule{Rule: &storepb.Rule{Pattern: "*"}}},
	}
	header := &storepb.SnapshotHeader{
		Version: snapshotVersion, Digest: make([]byte, 32), NextIno: 200, NextCookie: 200, MaxInodes: 100, Records: uint64(len(records)),
	}
	_, err := Restore(bytes.NewReader(signed(t, header, records)))
	require.NoError(t, err)
}
