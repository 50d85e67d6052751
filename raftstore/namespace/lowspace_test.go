package namespace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestShortOfSpace has what is there be removed, released and renewed, and nothing grow, until the alarm is cleared. It is so too
// behind a snapshot.
func TestShortOfSpace(t *testing.T) {
	tr := newDriver(t)
	small, large := tr.file(RootIno, "small"), tr.file(RootIno, "large")
	tr.write(here, large, strings.Repeat("x", 3000)).ok()
	tr.file(RootIno, "old")
	dir := tr.mkdir(RootIno, "dir")
	free := func() uint64 {
		return tr.ns.Query(&storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}}).GetFsStats().GetFreeBytes()
	}
	require.NotZero(t, free())
	tr.do(0, opOf(&storepb.RaiseAlarm{Alarm: &storepb.Alarm{Kind: AlarmNoSpace, Node: "a", Name: "alpha"}})).ok()
	number := tr.index
	require.Zero(t, free())
	for _, restart := range []bool{false, true} {
		if restart {
			tr.ns = restored(t, snapshotBytes(t, tr.ns.Snapshot()))
		}
		require.Contains(t, tr.create(RootIno, "new", someFile).is(storepb.Code_NO_SPACE).GetMessage(), "server alpha is short of space")
		tr.link(small, RootIno, "link").is(storepb.Code_NO_SPACE)
		tr.write(here, small, strings.Repeat("x", 600)).is(storepb.Code_NO_SPACE)
		tr.write(here, large, strings.Repeat("x", 5000)).is(storepb.Code_NO_SPACE)
		tr.do(here, opOf(&storepb.SetXattr{Ino: large, Name: []byte("user.a"), Value: make([]byte, 2000)})).is(storepb.Code_NO_SPACE)

		tr.write(here, small, strings.Repeat("y", 500)).ok()
		tr.write(here, large, strings.Repeat("y", 3001)).ok()
		tr.create(RootIno, "small", someFile).is(storepb.Code_EXISTS)
		tr.do(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("small"), Mode: someFile})).ok()
		tr.kernelLock(here, small, 1, storepb.LockKind_FLOCK, false).ok()
		tr.kernelUnlock(here, small, 1, storepb.LockKind_FLOCK)
		tr.do(here, opOf(&storepb.SetAttr{Ino: small, MtimeNow: true})).ok()
	}
	tr.rename(RootIno, "old", dir, "older").ok()
	tr.unlink(here, dir, "older").ok()
	tr.rmdir(RootIno, "dir").ok()
	tr.write(here, large, "").ok()

	tr.do(here, opOf(&storepb.ClearAlarm{Number: number})).ok()
	require.NotZero(t, free())
	tr.create(RootIno, "new", someFile).ok()
	tr.write(here, large, strings.Repeat("x", 5000)).ok()
}

// TestAMemberThatIsRemovedIsNotShortOfSpace has only the alarm of its disk be cleared.
func TestAMemberThatIsRemovedIsNotShortOfSpace(t *testing.T) {
	tr := newDriver(t)
	for _, alarm := range []*storepb.Alarm{
		{Kind: AlarmNoSpace, Node: "a"}, {Kind: AlarmNoSpace, Node: "b"}, {Kind: AlarmStateDiffers, Node: "b"},
	} {
		tr.do(0, opOf(&storepb.RaiseAlarm{Alarm: alarm})).ok()
	}
	left := func() (kinds []string) {
		for _, alarm := range tr.ns.Alarms() {
			kinds = append(kinds, alarm.GetKind()+" "+alarm.GetNode())
		}
		return kinds
	}
	tr.do(0, opOf(&storepb.RemoveMember{Id: "b"})).ok()
	require.Equal(t, []string{"no_space a", "state_differs b"}, left())
	tr.create(RootIno, "refused", someFile).is(storepb.Code_NO_SPACE)
	tr.do(0, opOf(&storepb.RemoveMember{Id: "a"})).ok()
	require.Equal(t, []string{"state_differs b"}, left())
	tr.create(RootIno, "made", someFile).ok()
}

// TestWhatWasDoneBeforeTheShortage has a creation come again that was done, and one that was refused.
func TestWhatWasDoneBeforeTheShortage(t *testing.T) {
	tr := newDriver(t)
	done := tr.next(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("done"), Mode: someFile, Exclusive: true}))
	tr.apply(done).ok()
	tr.do(0, opOf(&storepb.RaiseAlarm{Alarm: &storepb.Alarm{Kind: AlarmNoSpace, Node: "a"}})).ok()
	number := tr.index
	tr.apply(done).ok()
	refused := tr.next(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("refused"), Mode: someFile, Exclusive: true}))
	tr.apply(refused).is(storepb.Code_NO_SPACE)
	tr.do(0, opOf(&storepb.ClearAlarm{Number: number})).ok()
	tr.apply(refused).is(storepb.Code_NO_SPACE)
	require.Equal(t, []string{"done"}, tr.names())
}
