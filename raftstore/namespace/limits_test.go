package namespace

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// Users of these tests; others are root.
const (
	uidAnne = 1001
	uidBert = 1002
	uidCarl = 1003
)

// byUser does an operation for a user.
func (tr *driver) byUser(uid uint32, op *storepb.Op) step {
	cmd := tr.next(here, op)
	cmd.Caller.Uid = uid
	return tr.apply(cmd)
}

func (tr *driver) limit(limits *storepb.SetLimits) { tr.do(0, opOf(limits)).ok() }

func (tr *driver) createBy(uid uint32, name string) step {
	return tr.byUser(uid, opOf(&storepb.Create{Parent: RootIno, Name: []byte(name), Mode: someFile, Exclusive: true}))
}

func (tr *driver) writeBy(uid uint32, ino uint64, size int) step {
	version := tr.ns.Query(getAttr(ino)).GetAttr().GetVersion()
	return tr.byUser(uid, opOf(&storepb.SetContent{Ino: ino, IfVersion: version, Content: []byte(strings.Repeat("x", size))}))
}

func (tr *driver) chown(ino uint64, uid uint32) {
	tr.byUser(0, opOf(&storepb.SetAttr{Ino: ino, Uid: proto.Uint32(uid)})).ok()
}

// fillBy has a user make files of a size until he may not; it answers why.
func (tr *driver) fillBy(uid uint32, size int) storepb.Code {
	for i := 0; ; i++ {
		made := tr.createBy(uid, fmt.Sprintf("%d-%d", uid, tr.index))
		if made.GetCode() != storepb.Code_OK {
			return made.GetCode()
		}
		if code := tr.writeBy(uid, made.GetAttr().GetIno(), size).GetCode(); code != storepb.Code_OK {
			return code
		}
		require.Less(tr.tb, i, 10_000)
	}
}

// TestOneUserCannotFillIt: when his share is used up others go on, and so do those of his locks that are small.
func TestOneUserCannotFillIt(t *testing.T) {
	for what, limits := range map[string]*storepb.SetLimits{
		"bytes":  {MaxBytes: 1 << 20},
		"inodes": {MaxInodes: 100},
		"both":   {MaxInodes: 1000, MaxBytes: 1 << 20, MaxBytesPerUser: 100 << 10, MaxInodesPerUser: 20},
	} {
		t.Run(what, func(t *testing.T) {
			tr := newDriver(t)
			tr.limit(limits)
			lock := tr.createBy(uidAnne, "lock").ok().GetAttr().GetIno()
			tr.writeBy(uidAnne, lock, 100).ok()
			require.Equal(t, storepb.Code_QUOTA, tr.fillBy(uidAnne, 5000))
			require.Equal(t, storepb.Code_QUOTA, tr.fillBy(uidAnne, 0))
			requireConsistent(t, tr.ns)
			tr.restart()
			tr.createBy(uidAnne, "more").is(storepb.Code_QUOTA)
			for _, size := range []int{0, 300, 0, 500} {
				tr.writeBy(uidAnne, lock, size).ok()
			}
			ofBert := tr.createBy(uidBert, "of bert").ok().GetAttr().GetIno()
			tr.writeBy(uidBert, ofBert, 5000).ok()
			tr.createBy(0, "of root").ok()
			tr.unlink(here, RootIno, "lock").ok()
			tr.createBy(uidAnne, "again").ok()
			requireConsistent(t, tr.ns)
		})
	}
}

// TestRootWorksWhereItIsFull: others leave some of it to root, who is bound by the whole alone.
func TestRootWorksWhereItIsFull(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxBytes: 1 << 20})
	require.Equal(t, storepb.Code_QUOTA, tr.fillBy(uidAnne, 3000))
	require.Equal(t, storepb.Code_QUOTA, tr.fillBy(uidAnne, 0))
	require.Equal(t, storepb.Code_NO_SPACE, tr.fillBy(uidBert, 3000))
	require.Equal(t, storepb.Code_NO_SPACE, tr.fillBy(uidBert, 0))
	require.LessOrEqual(t, tr.ns.Usage().GetFreeBytes(), uint64(1<<20/rootReserve+1<<20/commonReserve+nameOverhead+leastInode))
	tr.createBy(0, "of root").ok()
	require.Equal(t, storepb.Code_NO_SPACE, tr.fillBy(0, 3000))
	require.LessOrEqual(t, tr.ns.tree.usage.used.bytes, uint64(1<<20))
	requireConsistent(t, tr.ns)
}

// TestOtherUsersFillItAndLocksAreStillMade from the common reserve, of which a host has a part.
func TestOtherUsersFillItAndLocksAreStillMade(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxBytes: 64 << 20})
	acknowledge := func() {
		cmd := tr.next(here, opOf(&storepb.Tick{}))
		cmd.Acked = cmd.Seq - 1
		tr.apply(cmd)
	}
	for uid := uint32(100); tr.growBy(uid) != storepb.Code_NO_SPACE || tr.fillBy(uid, 0) != storepb.Code_NO_SPACE; uid++ {
		tr.fillBy(uid, 0)
		acknowledge()
	}
	acknowledge()
	cycle := func() {
		temp := tr.createBy(uidCarl, "temp").ok().GetAttr().GetIno()
		tr.writeBy(uidCarl, temp, 400).ok()
		tr.byUser(uidCarl, opOf(&storepb.Link{Ino: temp, Parent: RootIno, Name: []byte("lock")})).ok()
		tr.unlink(here, RootIno, "temp").ok()
		tr.byUser(uidCarl, opOf(&storepb.Create{Parent: RootIno, Name: []byte("deploy.lock"), Mode: someDir})).ok()
		tr.rmdir(RootIno, "deploy.lock").ok()
		tr.unlink(here, RootIno, "lock").ok()
	}
	for range 100 {
		cycle()
	}
	requireConsistent(t, tr.ns)
	tr.restart()
	requireConsistent(t, tr.ns)
	// As many users as it likes, one host leaves room to another one.
	makeBy := func(host string, uid uint32, name string) step {
		cmd := tr.next(here, createOp(RootIno, name, true))
		cmd.Caller.Host, cmd.Caller.Uid = host, uid
		return tr.apply(cmd)
	}
	made := uint64(0)
	for makeBy("greedy", 5000+uint32(made), fmt.Sprint("greedy", made)).GetCode() == storepb.Code_OK {
		made++
	}
	require.Equal(t, tr.ns.tree.usage.limits.reserved()/hostReserve, tr.ns.tree.usage.reserve.byHost.Used("greedy"))
	refused := makeBy("greedy", 9000, "more").is(storepb.Code_NO_SPACE)
	require.Contains(t, refused.GetMessage(), "--max-bytes")
	makeBy("modest", 9000, "of another host").ok()
	cycle()
	requireConsistent(t, tr.ns)
}

// TestWhoOwnsItIsCharged, whoever writes; and chown takes all of it along.
func TestWhoOwnsItIsCharged(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxBytesPerUser: 10 << 10})
	ino := tr.createBy(uidAnne, "f").ok().GetAttr().GetIno()
	tr.link(ino, RootIno, "g").ok()
	empty := tr.ns.tree.usage.usageOf(uidAnne).bytes
	require.EqualValues(t, leastInode+2*nameOverhead, empty)
	tr.writeBy(uidBert, ino, 5<<10).ok()
	require.Zero(t, tr.ns.tree.usage.usageOf(uidBert).bytes)
	before := *tr.ns.tree.usage.usageOf(uidAnne)
	tr.writeBy(uidBert, ino, 10<<10).is(storepb.Code_QUOTA)
	tr.writeBy(0, ino, 10<<10).ok()
	tr.chown(ino, uidBert)
	require.Equal(t, usage{1, before.bytes + 5<<10}, *tr.ns.tree.usage.usageOf(uidBert))
	require.Zero(t, *tr.ns.tree.usage.usageOf(uidAnne))
	tr.byUser(uidAnne, opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.a"), Value: []byte("v")})).is(storepb.Code_QUOTA)
	tr.byUser(uidAnne, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("h")})).is(storepb.Code_QUOTA)
	requireConsistent(t, tr.ns)
	tr.restart()
	tr.chown(ino, 0)
	tr.byUser(uidAnne, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("h")})).ok()
	requireConsistent(t, tr.ns)
}

// TestOthersCannotUseUpSomebodysShare by names that they give to a file of his, where he cannot remove them; nor what is root's
// there, of which there is no share.
func TestOthersCannotUseUpSomebodysShare(t *testing.T) {
	for _, owner := range []uint32{uidAnne, 0} {
		tr := newDriver(t)
		tr.limit(&storepb.SetLimits{MaxBytes: 4 << 20, MaxBytesPerUser: 1 << 20})
		ino := tr.createBy(owner, "lock").ok().GetAttr().GetIno()
		link := func(uid uint32, i int) storepb.Code {
			return tr.byUser(uid, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: fmt.Append(nil, uid, "-", i)})).GetCode()
		}
		made := 0
		for link(uidBert, made) == storepb.Code_OK {
			made++
		}
		require.Equal(t, storepb.Code_TOO_MANY_LINKS, link(uidBert, made))
		require.LessOrEqual(t, made*nameOverhead, MaxContent)
		require.Equal(t, storepb.Code_OK, link(owner, made))
		tr.createBy(owner, "more").ok()
		tr.createBy(uidCarl, "of carl").ok()
		requireConsistent(t, tr.ns)
	}
}

// TestLocksAreRenewedWhereItIsFull of data: by a file that replaces theirs, and by locks that are made with a link. So one user who
// writes as much as he can loses no lock, and all together do not either.
func TestLocksAreRenewedWhereItIsFull(t *testing.T) {
	for what, fill := range map[string]func(*driver){
		"the share": func(tr *driver) { require.Equal(t, storepb.Code_QUOTA, tr.growBy(uidAnne)) },
		"all": func(tr *driver) {
			require.Equal(t, storepb.Code_QUOTA, tr.growBy(uidBert))
			require.Equal(t, storepb.Code_NO_SPACE, tr.growBy(uidCarl))
		},
	} {
		t.Run(what, func(t *testing.T) {
			tr := newDriver(t)
			tr.limit(&storepb.SetLimits{MaxBytes: 1 << 20})
			tr.writeBy(uidAnne, tr.createBy(uidAnne, "lock").ok().GetAttr().GetIno(), 400).ok()
			fill(tr)
			for range 20 {
				temp := tr.createBy(uidAnne, "temp").ok().GetAttr().GetIno()
				tr.writeBy(uidAnne, temp, 450).ok()
				tr.byUser(uidAnne, opOf(&storepb.Rename{Parent: RootIno, Name: []byte("temp"), NewParent: RootIno, NewName: []byte("lock")})).ok()
			}
			temp := tr.createBy(uidAnne, "temp").ok().GetAttr().GetIno()
			tr.byUser(uidAnne, opOf(&storepb.Link{Ino: temp, Parent: RootIno, Name: []byte("other lock")})).ok()
			tr.writeBy(uidAnne, temp, 5000).is(map[string]storepb.Code{"the share": storepb.Code_QUOTA, "all": storepb.Code_NO_SPACE}[what])
			requireConsistent(t, tr.ns)
		})
	}
}

// growBy has a user append to files, little by little in the end, until he may not; it answers why.
func (tr *driver) growBy(uid uint32) storepb.Code {
	ino, size := uint64(0), MaxContent
	for step := 64 << 10; ; {
		if size+step > MaxContent {
			ino, size = tr.createBy(uid, fmt.Sprintf("%d-%d", uid, tr.index)).ok().GetAttr().GetIno(), 0
		}
		switch code := tr.writeBy(uid, ino, size+step).GetCode(); {
		case code == storepb.Code_OK:
			size += step
		case step == 1:
			return code
		default:
			step = max(1, step/8)
		}
	}
}

// TestLimitBelowWhatIsUsed refuses what adds to it, and nothing else.
func TestLimitBelowWhatIsUsed(t *testing.T) {
	tr := newDriver(t)
	lock := tr.createBy(uidAnne, "lock").ok().GetAttr().GetIno()
	file := tr.createBy(uidAnne, "file").ok().GetAttr().GetIno()
	tr.writeBy(uidAnne, file, 20<<10).ok()
	lockOf := func(to storepb.LockType) *storepb.Op {
		return opOf(&storepb.TakeLock{Ino: lock, Type: to, Owner: 1, End: math.MaxInt64, Session: here})
	}
	tr.do(here, lockOf(storepb.LockType_EXCLUSIVE)).ok()
	tr.limit(&storepb.SetLimits{MaxBytes: 8 << 10, MaxInodes: 2})
	tr.createBy(0, "more").is(storepb.Code_NO_SPACE)
	tr.writeBy(0, file, 21<<10).is(storepb.Code_NO_SPACE)
	tr.writeBy(uidAnne, file, 20<<10).ok()
	tr.writeBy(uidAnne, file, 19<<10).ok()
	tr.writeBy(uidAnne, lock, 200).ok()
	tr.rename(RootIno, "file", RootIno, "renamed").ok()
	tr.byUser(uidAnne, opOf(&storepb.SetAttr{Ino: file, Mode: proto.Uint32(0o600), MtimeNow: true})).ok()
	tr.do(here, lockOf(storepb.LockType_UNLOCK)).ok()
	tr.writeBy(uidAnne, file, 0).ok()
	tr.unlink(here, RootIno, "lock").ok()
	tr.unlink(here, RootIno, "renamed").ok()
	tr.createBy(uidAnne, "again").ok()
	requireConsistent(t, tr.ns)
}

// TestRemovedFileCountsWhileItIsKept, and no longer: what nobody keeps makes room at once.
func TestRemovedFileCountsWhileItIsKept(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxBytesPerUser: 10 << 10})
	ino := tr.createBy(uidAnne, "f").ok().GetAttr().GetIno()
	tr.writeBy(uidAnne, ino, 8<<10).ok()
	tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("f"), Pin: ino})).ok()
	other := tr.createBy(uidAnne, "g").ok().GetAttr().GetIno()
	tr.writeBy(uidAnne, other, 8<<10).is(storepb.Code_QUOTA)
	tr.restart()
	tr.writeBy(uidAnne, other, 8<<10).is(storepb.Code_QUOTA)
	tr.do(here, opOf(&storepb.Unpin{Ino: ino})).ok()
	tr.writeBy(uidAnne, other, 8<<10).ok()
	requireConsistent(t, tr.ns)
	tr.restart()
	requireConsistent(t, tr.ns)
	tr.unlink(here, RootIno, "g").ok()
	require.Zero(t, *tr.ns.tree.usage.usageOf(uidAnne))
	requireConsistent(t, tr.ns)
}

// TestRemovedFilesTakeLittleMemory: they count for nobody, so there are fewer of them the larger they are.
func TestRemovedFilesTakeLittleMemory(t *testing.T) {
	tr := newDriver(t)
	for range orphanBytes/MaxContent + 50 {
		ino := tr.createBy(uidAnne, "f").ok().GetAttr().GetIno()
		tr.writeBy(uidAnne, ino, MaxContent).ok()
		tr.wait(-2 * time.Second) // no time passes
		tr.unlink(here, RootIno, "f").ok()
		tr.wait(-time.Second)
		require.LessOrEqual(t, tr.ns.tree.usage.forgotten, uint64(orphanBytes+MaxContent+inodeOverhead))
	}
	require.Greater(t, tr.ns.tree.usage.forgotten, uint64(orphanBytes-MaxContent))
	requireConsistent(t, tr.ns)
}

// TestWhatIsKnownOfAHolderCounts for as long as it is known, whatever the file holds by then.
func TestWhatIsKnownOfAHolderCounts(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxBytesPerUser: 100 << 10})
	ino := tr.createBy(uidAnne, "f").ok().GetAttr().GetIno()
	write := func(size int) step {
		facts := factsFor(storepb.Format_SWARM, "x", math.MaxInt64)
		facts.Tag = strings.Repeat("t", size)
		version := tr.ns.Query(getAttr(ino)).GetAttr().GetVersion()
		return tr.byUser(uidAnne, opOf(&storepb.SetContent{Ino: ino, IfVersion: version, Content: []byte(facts.GetTag()), Facts: facts}))
	}
	write(60 << 10).is(storepb.Code_QUOTA)
	write(40 << 10).ok()
	tr.writeBy(uidAnne, ino, 0).ok()
	require.Greater(t, tr.ns.tree.usage.usageOf(uidAnne).bytes, uint64(40<<10))
	requireConsistent(t, tr.ns)
	tr.restart()
	requireConsistent(t, tr.ns)
	tr.unlink(here, RootIno, "f").ok()
	require.Zero(t, *tr.ns.tree.usage.usageOf(uidAnne))
}

// TestStatFs tells each user what he may still use.
func TestStatFs(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxBytes: 1 << 20, MaxInodes: 128})
	ino := tr.createBy(uidAnne, "f").ok().GetAttr().GetIno()
	tr.writeBy(uidAnne, ino, 100<<10).ok()
	const root = leastInode
	const file = inodeOverhead + 100<<10 + nameOverhead
	for uid, free := range map[uint32]uint64{
		0: 1<<20 - root - file, uidAnne: 1<<19 - 1<<19/lockReserve - file, uidBert: 1<<19 - 1<<19/lockReserve,
	} {
		requireSame(t, &storepb.FsStats{
			Inodes: 2, MaxInodes: 128, Bytes: root + file, MaxBytes: 1 << 20, FreeBytes: free,
		}, tr.ns.Query(statFs(uid)).GetFsStats())
	}
}

// TestSubordinateUIDsUseTheShareOfTheirOwner: a user leaves room to others, as how many uids its programs may act.
func TestSubordinateUIDsUseTheShareOfTheirOwner(t *testing.T) {
	tr := newDriver(t)
	tr.limit(&storepb.SetLimits{MaxInodesPerUser: 10, MaxLocksPerUser: 5})
	makeAs := func(uid, counts uint32, name string) step {
		cmd := tr.next(here, createOp(RootIno, name, true))
		cmd.Caller.Uid, cmd.Caller.BudgetUid = uid, counts
		return tr.apply(cmd)
	}
	for i := range uint32(10) {
		made := makeAs(100_000+i, uidAnne, fmt.Sprint("of ", i)).ok()
		require.Equal(t, 100_000+i, made.GetAttr().GetUid())
	}
	makeAs(100_050, uidAnne, "more").is(storepb.Code_QUOTA)
	makeAs(uidAnne, 0, "more").is(storepb.Code_QUOTA)
	requireConsistent(t, tr.ns)
	tr.restart()
	requireConsistent(t, tr.ns)
	makeAs(100_050, uidAnne, "more").is(storepb.Code_QUOTA)
	makeAs(uidBert, 0, "of bert").ok()
	ino := tr.at(RootIno, "of 0")
	chown := tr.next(here, opOf(&storepb.SetAttr{Ino: ino, Uid: proto.Uint32(100_001)}))
	chown.Caller.Uid, chown.Caller.BudgetUid = 100_000, uidAnne // root of the user's container
	tr.apply(chown).ok()
	makeAs(uidAnne, 0, "more").is(storepb.Code_QUOTA)
	tr.chown(ino, uidBert)
	makeAs(uidAnne, 0, "more").ok()
	requireConsistent(t, tr.ns)

	file := tr.file(RootIno, "locked")
	for i := range uint64(6) {
		cmd := tr.next(here, opOf(&storepb.TakeLock{
			Ino: file, Kind: storepb.LockKind_RECORD, Type: storepb.LockType_SHARED, Owner: i + 1, End: math.MaxInt64, Session: here,
		}))
		cmd.Caller.Uid, cmd.Caller.BudgetUid = 100_000+uint32(i), uidAnne
		tr.apply(cmd).is(map[bool]storepb.Code{true: storepb.Code_OK, false: storepb.Code_NO_LOCKS}[i < 5])
	}
}
