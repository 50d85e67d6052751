package namespace

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
)

// TestNewerSnapshotIsNotRestored has a header, a record and a message within one that this program does not know all of.
func TestNewerSnapshotIsNotRestored(t *testing.T) {
	header := func() *storepb.SnapshotHeader {
		return &storepb.SnapshotHeader{Version: snapshotVersion, Digest: make([]byte, 32), NextIno: 200, NextCookie: 200, Records: 1}
	}
	root := func() *storepb.Record {
		return (&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno}).Record()
	}
	restored(t, signed(t, header(), []*storepb.Record{root()}))
	newer := make(map[string][]byte)
	number := protowire.AppendVarint(protowire.AppendTag(nil, 400, protowire.VarintType), 1)
	text := protowire.AppendBytes(protowire.AppendTag(nil, 300, protowire.BytesType), []byte("x"))
	fixed := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 1)
	for i, unknown := range [][]byte{number, text, fixed} {
		h, outer, inner := header(), root(), root()
		h.ProtoReflect().SetUnknown(unknown)
		newer[fmt.Sprint("header ", i)] = signed(t, h, []*storepb.Record{root()})
		outer.ProtoReflect().SetUnknown(unknown)
		newer[fmt.Sprint("record ", i)] = signed(t, header(), []*storepb.Record{outer})
		inner.GetInode().GetAttr().ProtoReflect().SetUnknown(unknown)
		newer[fmt.Sprint("attributes ", i)] = signed(t, header(), []*storepb.Record{inner})
	}
	kind := new(storepb.Record)
	kind.ProtoReflect().SetUnknown(text)
	newer["a kind of record"] = signed(t, header(), []*storepb.Record{kind})
	newer["another version"] = signed(t, &storepb.SnapshotHeader{Version: snapshotVersion + 1}, nil)
	for what, content := range newer {
		_, err := Restore(bytes.NewReader(content))
		require.ErrorIs(t, err, codec.ErrNewer, what)
		require.NotErrorIs(t, err, codec.ErrCorrupt, what)
		if what != "another version" {
			content[len(content)-1] ^= 1
			_, err = Restore(bytes.NewReader(content))
			require.ErrorIs(t, err, codec.ErrCorrupt, what)
		}
	}
}

// TestSnapshotWithFactsInWordsIsNotRestored has what an earlier version said of a lock, whatever the header says.
func TestSnapshotWithFactsInWordsIsNotRestored(t *testing.T) {
	record := (&inode{ino: RootIno, mode: rootMode, nlink: 2, parent: RootIno}).Record()
	record.GetInode().Facts = new(storepb.Facts)
	record.GetInode().GetFacts().ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "pid"))
	header := &storepb.SnapshotHeader{Version: snapshotVersion, Digest: make([]byte, 32), NextIno: 200, NextCookie: 200, Records: 1}
	_, err := Restore(bytes.NewReader(signed(t, header, []*storepb.Record{record})))
	require.ErrorIs(t, err, codec.ErrOlder)
	require.NotErrorIs(t, err, codec.ErrCorrupt)
	require.ErrorContains(t, err, "field 1 of Facts")
}
