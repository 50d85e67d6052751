package raftstore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// hostileCommands are what no mount sends.
func hostileCommands() []*storepb.Command {
	huge := []byte(strings.Repeat("n", 1<<17))
	ops := []*storepb.Op{
		nil, {}, {Op: &storepb.Op_Create{}}, {Op: &storepb.Op_Rename{}}, {Op: &storepb.Op_SetMember{}},
		opOf(&storepb.Create{Parent: RootIno, Name: huge, Mode: math.MaxUint32, Target: huge}),
		opOf(&storepb.Create{Parent: RootIno, Name: []byte("f"), Mode: someFile | 1<<31}),
		opOf(&storepb.Create{Name: []byte("f"), Mode: someFile}),
		opOf(&storepb.Create{Parent: 2, Name: []byte("f"), Mode: someFile}),
		opOf(&storepb.Link{Ino: RootIno, Parent: RootIno, Name: []byte("f")}),
		opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("."), Directory: true}),
		opOf(&storepb.Unlink{Parent: RootIno, Name: []byte(".."), Directory: true}),
		renameOp(RootIno, ".", RootIno, ".."),
		renameOp(RootIno, "dir", 2, "dir"),
		renameOp(math.MaxUint64, "dir", math.MaxUint64, "dir"),
		opOf(&storepb.SetAttr{Ino: RootIno, Mode: proto.Uint32(math.MaxUint32), Atime: proto.Int64(math.MinInt64)}),
		opOf(&storepb.SetAttr{Ino: RootIno, Mtime: proto.Int64(math.MaxInt64), MtimeNow: true}),
		opOf(&storepb.SetContent{Ino: RootIno}),
		opOf(&storepb.SetContent{IfVersion: math.MaxUint64, Content: huge}),
		opOf(&storepb.SetXattr{Ino: RootIno, Name: huge, Value: huge, MustCreate: true, MustReplace: true}),
		opOf(&storepb.RemoveXattr{Ino: RootIno}),
		opOf(&storepb.Pin{}), opOf(&storepb.Unpin{Ino: RootIno}),
		opOf(&storepb.OpenSession{Host: string(huge), BootId: "b"}),
		opOf(&storepb.CloseSession{}), opOf(&storepb.EndSession{Id: here, LastKeepalive: math.MinInt64}),
		opOf(&storepb.Cancel{}), opOf(&storepb.Cancel{Seq: math.MaxUint64}),
		opOf(&storepb.SetMember{Member: &storepb.Member{Id: "i", Name: string(huge)}}),
		opOf(&storepb.RemoveMember{}), opOf(&storepb.SetLimits{MaxInodes: math.MaxUint64}),
	}
	commands := []*storepb.Command{nil, {}}
	for _, op := range ops {
		commands = append(commands,
			&storepb.Command{Op: op, Time: math.MinInt64},
			&storepb.Command{Session: here, Seq: 50, Acked: math.MaxUint64, Op: op, Time: math.MaxInt64},
			&storepb.Command{Session: here, Op: op},
			&storepb.Command{Session: math.MaxUint64, Seq: math.MaxUint64, Op: op})
	}
	return commands
}

func checksummed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, crc32.Checksum(message, castagnoli)), message...)
}

// useHard applies a command to a namespace, and then asks and changes what is there.
func useHard(tb testing.TB, ns *Namespace, commands ...*storepb.Command) {
	index := uint64(1000)
	for _, cmd := range commands {
		index++
		require.NotNil(tb, ns.Apply(index, cmd))
	}
	inos := append(ns.inodes.Keys(), 0, math.MaxUint64)
	for _, ino := range inos[:min(len(inos), 20)] {
		for _, query := range []*storepb.Query{
			getAttr(ino), readOf(ino), readDirOf(ino, 0, 0), readDirOf(ino, math.MaxUint64, 1), xattrsOf(ino),
			lookupOf(ino, "a"), lookupOf(ino, ".."), statFs(), {}, {Query: &storepb.Query_Read{}}, nil,
		} {
			require.NotNil(tb, ns.Query(query))
		}
		for _, op := range []*storepb.Op{
			opOf(&storepb.Create{Parent: ino, Name: []byte("new"), Mode: someDir}),
			renameOp(RootIno, "new", ino, "moved"), renameOp(ino, "new", RootIno, "moved"),
			renameOp(ino, "moved", ino, "new"), opOf(&storepb.Cancel{Seq: 1}),
			opOf(&storepb.SetContent{Ino: ino}), opOf(&storepb.Pin{Ino: ino}), opOf(&storepb.Unpin{Ino: ino}),
		} {
			index++
			ns.Apply(index, &storepb.Command{Session: here, Seq: index, Op: op, Time: int64(index) << 36})
		}
	}
}

func TestHostileCommandsDoNotPanic(t *testing.T) {
	ns := small(t)
	for _, cmd := range hostileCommands() {
		useHard(t, restored(t, snapshotBytes(t, ns.Snapshot())), cmd)
	}
	useHard(t, ns, hostileCommands()...)
	requireConsistent(t, ns)
	restored(t, snapshotBytes(t, ns.Snapshot()))
}

// FuzzDecodeCommand: whatever decodes can be applied, and a namespace stays consistent and can be restored.
func FuzzDecodeCommand(f *testing.F) {
	for _, cmd := range hostileCommands() {
		message, err := proto.Marshal(cmd)
		require.NoError(f, err)
		if len(message) < 1<<12 {
			f.Add(message)
		}
	}
	f.Add([]byte("\xff\xff\xff"))
	f.Add([]byte{0x9a, 0x06, 1, 2}) // a field that there is not yet
	whole := snapshotBytes(f, small(f).Snapshot())
	f.Fuzz(func(t *testing.T, message []byte) {
		_, err := DecodeCommand(message)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
		cmd, err := DecodeCommand(checksummed(message))
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		ns := restored(t, whole)
		useHard(t, ns, cmd, cmd)
		requireConsistent(t, ns)
		restored(t, snapshotBytes(t, ns.Snapshot()))
	})
}

// FuzzRestore: bytes are refused, or a namespace of them can be used. The records are tried with a right
// checksum too, so that the fuzzer gets behind it.
func FuzzRestore(f *testing.F) {
	whole := snapshotBytes(f, small(f).Snapshot())
	f.Add(whole)
	f.Add(whole[:len(whole)-32])
	f.Add([]byte(snapshotMagic))
	f.Add(snapshotBytes(f, NewNamespace().Snapshot()))
	header, records := recordsOf(f, whole)
	for i := range records {
		changed := append(records[:i:i], records[i+1:]...)
		f.Add(signed(f, header, changed))
		header := proto.Clone(header).(*storepb.SnapshotHeader)
		header.Records--
		f.Add(signed(f, header, changed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body := data[:max(0, len(data)-32)]
		for _, data := range [][]byte{data, resigned(body), resigned(data)} {
			ns, err := Restore(bytes.NewReader(data))
			if err != nil {
				continue
			}
			useHard(t, ns)
		}
	})
}
