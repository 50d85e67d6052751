package namespace

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/checksum"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/test/fuzzing"
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
	commands := []*storepb.Command{nil, {}, {Op: opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "**", Holder: "creator", OnStale: "keep"}})}}
	for _, line := range [][]*storepb.Process{
		{nil}, {{}}, {{Pid: math.MaxUint32, BootId: "boot"}, nil}, {processOf(1), {}, processOf(2)}, {processOf(1), processOf(1)},
		{{Pid: 1, BootId: string(huge), SeenFrom: make([]uint64, 1000)}}, slices.Repeat([]*storepb.Process{processOf(1)}, 10_000),
	} {
		for i, op := range []*storepb.Op{
			createOp(RootIno, "made", true), opOf(&storepb.Link{Ino: 3, Parent: RootIno, Name: []byte("linked")}),
			renameOp(RootIno, "linked", RootIno, "renamed"), noReplace(RootIno, "renamed", RootIno, "again"),
			opOf(&storepb.ProcessGone{Processes: line, Ended: []int64{math.MinInt64, math.MaxInt64}}),
		} {
			commands = append(commands, &storepb.Command{
				Session: here, Seq: uint64(60 + i), Op: op, Caller: &storepb.Caller{Host: "here", Lineage: line, Family: math.MaxUint32},
			})
		}
	}
	for _, op := range append(ops, hostileLockOps()...) {
		commands = append(commands,
			&storepb.Command{Op: op, Time: math.MinInt64},
			&storepb.Command{Session: here, Seq: 50, Acked: math.MaxUint64, Op: op, Time: math.MaxInt64},
			&storepb.Command{Session: here, Op: op},
			&storepb.Command{Session: math.MaxUint64, Seq: math.MaxUint64, Op: op})
	}
	return commands
}

// hostileLockOps hold nothing where something is expected, and strange things elsewhere.
func hostileLockOps() []*storepb.Op {
	seen := []*storepb.Observation{nil, {}, {Parent: RootIno, Name: []byte("later"), Token: math.MaxUint64}}
	facts := &storepb.Facts{
		Format: 99, Holder: "\n", Host: strings.Repeat("h", 300), Pid: math.MaxUint32, IssuedAt: math.MinInt64,
		ExpiresAt: math.MaxInt64, Guard: storepb.Guard_HOST, OnStale: -1, Process: new(storepb.Process), Tag: "t",
	}
	bottomless := &storepb.Facts{Format: storepb.Format_BEADS, Holder: strings.Repeat("x", 1<<20), Process: processOf(1)}
	return []*storepb.Op{
		{Op: &storepb.Op_Link{}}, {Op: &storepb.Op_Unlink{}}, {Op: &storepb.Op_SetAttr{}}, {Op: &storepb.Op_SetContent{}},
		{Op: &storepb.Op_SetXattr{}}, {Op: &storepb.Op_RemoveXattr{}}, {Op: &storepb.Op_Pin{}}, {Op: &storepb.Op_Unpin{}},
		{Op: &storepb.Op_OpenSession{}}, {Op: &storepb.Op_CloseSession{}}, {Op: &storepb.Op_Cancel{}},
		{Op: &storepb.Op_RemoveMember{}}, {Op: &storepb.Op_SetLimits{}}, {Op: &storepb.Op_EndSession{}},
		{Op: &storepb.Op_ProcessGone{}}, {Op: &storepb.Op_SetRule{}}, {Op: &storepb.Op_DeleteRule{}},
		{Op: &storepb.Op_ForgetHost{}}, {Op: &storepb.Op_Tick{}},
		opOf(&storepb.SetContent{Ino: 3, IfVersion: 5, Facts: facts, Name: new(storepb.Observation), Observations: seen}),
		opOf(&storepb.SetContent{Ino: 3, IfVersion: 5, Facts: bottomless}),
		opOf(&storepb.SetContent{Ino: 3, IfVersion: 5, Facts: &storepb.Facts{Format: storepb.Format_PID, Pid: 1, ExpiresAt: math.MinInt64}}),
		opOf(&storepb.Create{Parent: RootIno, Name: []byte("filled"), Mode: someFile, Exclusive: true, Facts: facts, Unlisted: true}),
		opOf(&storepb.Create{Parent: RootIno, Name: []byte("filled"), Mode: someFile, Exclusive: true, Facts: bottomless}),
		opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("later"), Observations: seen}),
		opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("filled"), Owner: "\n", Request: strings.Repeat("r", 1<<20)}),
		opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("dir"), Force: true, Directory: true}),
		opOf(&storepb.Rename{Parent: RootIno, Name: []byte("later"), NewParent: RootIno, NewName: []byte("kept"), Observations: seen}),
		opOf(&storepb.ProcessGone{Processes: []*storepb.Process{{}, processOf(1), {Pid: math.MaxUint32}}}),
		opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "**", StaleAfter: 1, OnStale: "remove", HostTimeout: math.MaxInt64}}),
		opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "**", StaleAfter: math.MaxInt64, HostTimeout: 1}}),
		opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: strings.Repeat("[", 1<<20), Format: strings.Repeat("f", 1<<20)}}),
		opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "*", Format: strings.Repeat("f", 1<<20)}}),
		opOf(&storepb.DeleteRule{Pattern: "k*"}),
		opOf(&storepb.ForgetHost{Name: "there"}), opOf(&storepb.ForgetHost{Name: strings.Repeat("h", 1<<20)}),
		opOf(&storepb.Tick{}),
		{Op: &storepb.Op_SetCluster{}}, {Op: &storepb.Op_AddAuthority{}}, {Op: &storepb.Op_DropAuthority{}}, {Op: &storepb.Op_PutToken{}},
		{Op: &storepb.Op_DeleteToken{}}, {Op: &storepb.Op_AdmitHost{}}, {Op: &storepb.Op_RevokeHost{}}, {Op: &storepb.Op_NoteRefusal{}},
		opOf(&storepb.PutToken{Token: &storepb.JoinToken{Id: make([]byte, 1<<20), Role: 9, Uses: math.MaxUint32, Expires: math.MinInt64}}),
		opOf(tokenFor("t", storepb.Role_CLIENT, math.MaxInt64)), opOf(hostFor("h", storepb.Role_CLIENT, "key", "t")),
		opOf(hostFor("h", storepb.Role_CLIENT, "key", "")), opOf(hostFor(strings.Repeat("h", 300), -1, "key", "t")),
		opOf(&storepb.RevokeHost{Name: "in"}), opOf(&storepb.NoteRefusal{Reason: strings.Repeat("r", 1<<20)}),
	}
}

func checksummed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, checksum.Of(message)), message...)
}

// useHard applies a command to a namespace, and then asks and changes what is there.
func useHard(tb testing.TB, ns *Namespace, commands ...*storepb.Command) {
	index := uint64(1000)
	for _, cmd := range commands {
		index++
		require.NotNil(tb, ns.Apply(ids.Index(index), cmd))
	}
	inos := append(ns.tree.inodes.Keys(), 0, math.MaxUint64)
	for _, of := range inos[:min(len(inos), 20)] {
		ino := uint64(of)
		for _, query := range []*storepb.Query{
			getAttr(ino), readOf(ino), readDirOf(ino, 0, 0), readDirOf(ino, math.MaxUint64, 1), xattrsOf(ino),
			lookupOf(ino, "a"), lookupOf(ino, ".."), statFs(0), {}, {Query: &storepb.Query_Read{}}, nil,
			getLock(ino, "f"), {Query: &storepb.Query_GetLock{GetLock: &storepb.GetLock{Ino: ino}}}, {Query: &storepb.Query_GetLock{}},
			listLocks(ino, "", 0), listLocks(ino, "f", math.MaxUint32), {Query: &storepb.Query_ListLocks{}},
			listEvents(ino, 0, 0), listEvents(ino, math.MinInt64, 1), {Query: &storepb.Query_ListEvents{}},
			listProcesses("here"), {Query: &storepb.Query_ListProcesses{}},
			{Query: &storepb.Query_ListRules{}}, {Query: &storepb.Query_ListHosts{}},
			{Query: &storepb.Query_GetCluster{}}, {Query: &storepb.Query_ListAuthorities{}}, {Query: &storepb.Query_ListTokens{}},
			{Query: &storepb.Query_GetAdmission{}}, {Query: &storepb.Query_ListAdmissions{}},
		} {
			require.NotNil(tb, ns.Query(query))
		}
		for _, op := range []*storepb.Op{
			opOf(&storepb.Create{Parent: ino, Name: []byte("new"), Mode: someDir}),
			renameOp(RootIno, "new", ino, "moved"), renameOp(ino, "new", RootIno, "moved"),
			renameOp(ino, "moved", ino, "new"), opOf(&storepb.Cancel{Seq: 1}),
			opOf(&storepb.SetContent{Ino: ino}), opOf(&storepb.Pin{Ino: ino}), opOf(&storepb.Unpin{Ino: ino}),
			opOf(&storepb.SetContent{Ino: ino, Facts: pidFacts(storepb.Format_BEADS, processOf(1))}), opOf(&storepb.Tick{}),
			opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "*", StaleAfter: int64(ino), OnStale: "remove"}}),
			opOf(&storepb.ProcessGone{Processes: []*storepb.Process{processOf(1)}}), opOf(&storepb.DeleteRule{Pattern: "*"}),
		} {
			index++
			ns.Apply(ids.Index(index), &storepb.Command{Session: here, Seq: index, Op: op, Time: int64(index) << 36})
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

// FuzzDecodeCommand: whatever decodes can be applied, and a namespace stays consistent. It can be restored, but for what nobody proposes or
// applies: a part that is not known would be so in a snapshot, too.
func FuzzDecodeCommand(f *testing.F) {
	for _, cmd := range hostileCommands() {
		message, err := proto.Marshal(cmd)
		require.NoError(f, err)
		if len(message) < 1<<12 {
			f.Add(message)
		}
	}
	for _, facts := range []*storepb.Facts{towerFacts("x"), pidFacts(storepb.Format_BEADS, processOf(2)), factsFor(storepb.Format_SEMAPHORE, "1", 1<<60)} {
		message, err := proto.Marshal(&storepb.Command{
			Session: here, Seq: 70, Caller: &storepb.Caller{Host: "here", Lineage: []*storepb.Process{processOf(2)}}, Time: 1 << 50,
			Op: opOf(&storepb.SetContent{Ino: 3, IfVersion: 5, Facts: facts, Name: &storepb.Observation{Parent: RootIno, Name: []byte("g")}}),
		})
		require.NoError(f, err)
		f.Add(message)
	}
	f.Add([]byte("\xff\xff\xff"))
	f.Add([]byte{0x9a, 0x06, 1, 2}) // a field that there is not yet
	whole := snapshotBytes(f, small(f).Snapshot())
	fuzzing.Run(f, func(t *testing.T, message []byte) {
		_, err := codec.DecodeCommand(message)
		if err != nil {
			require.ErrorIs(t, err, codec.ErrCorrupt)
		}
		cmd, err := codec.DecodeCommand(checksummed(message))
		if err != nil {
			require.ErrorIs(t, err, codec.ErrCorrupt)
			return
		}
		ns := restored(t, whole)
		useHard(t, ns, cmd, cmd)
		requireConsistent(t, ns)
		if codec.CheckKnown(checksummed(message), cmd) == nil {
			restored(t, snapshotBytes(t, ns.Snapshot()))
		}
	})
}

// FuzzRestore: bytes are refused, or a namespace of them can be used. The records are tried with a right
// checksum too, so that the fuzzer gets behind it.
func FuzzRestore(f *testing.F) {
	whole := snapshotBytes(f, small(f).Snapshot())
	f.Add(whole)
	f.Add(whole[:len(whole)-32])
	f.Add([]byte(snapshotMagic))
	f.Add(snapshotBytes(f, New().Snapshot()))
	header, records := recordsOf(f, whole)
	for i := range records {
		changed := append(records[:i:i], records[i+1:]...)
		f.Add(signed(f, header, changed))
		header := proto.Clone(header).(*storepb.SnapshotHeader)
		header.Records--
		f.Add(signed(f, header, changed))
	}
	fuzzing.Run(f, func(t *testing.T, data []byte) {
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
