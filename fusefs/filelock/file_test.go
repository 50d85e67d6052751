package filelock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

var process = Owner{Kind: storepb.LockKind_RECORD, Number: 7}

func request(typ storepb.LockType, start, end uint64) *storepb.TakeLock {
	return &storepb.TakeLock{Kind: process.Kind, Owner: uint64(process.Number), Type: typ, Start: start, End: end}
}

// take has a request of the process done.
func take(t testing.TB, f *File, through *Description, op *storepb.TakeLock) {
	t.Helper()
	r, errno := f.Begin(through, process)
	require.Zero(t, errno)
	require.True(t, f.End(r, op, true))
}

func TestAnOwnerIsForgottenWithItsLastByte(t *testing.T) {
	f, d := new(File), new(Description)
	take(t, f, d, request(storepb.LockType_EXCLUSIVE, 0, 9))
	require.Equal(t, ids.Session(5), d.Session(5))
	take(t, f, d, request(storepb.LockType_UNLOCK, 3, 4))
	require.Same(t, d, f.LockedThrough(process.Number))
	require.Equal(t, []ids.Owner{process.Number}, f.RecordOwners(d))
	take(t, f, d, request(storepb.LockType_UNLOCK, 0, 2))
	take(t, f, d, request(storepb.LockType_UNLOCK, 5, 9))
	require.Nil(t, f.LockedThrough(process.Number))
	require.Nil(t, f.BeginDrop(process, nil), "there is nothing to release")
	require.Equal(t, ids.Session(6), d.Session(6), "nothing is lost with the session that it had locks in")
}

// TestNothingBeginsBeforeAllIsReleased of what was there before.
func TestNothingBeginsBeforeAllIsReleased(t *testing.T) {
	f, d := new(File), new(Description)
	take(t, f, d, request(storepb.LockType_EXCLUSIVE, 0, 9))
	dropped := f.BeginDrop(process, nil)
	require.NotNil(t, dropped)
	require.True(t, f.IsDropping(process))
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		_, _ = f.Begin(d, process)
	}()
	_, errno := f.Begin(d, Owner{Kind: storepb.LockKind_FLOCK, Number: 1})
	require.Zero(t, errno, "another owner's")
	select {
	case <-begun:
		require.Fail(t, "the release would take it along")
	default:
	}
	dropped()
	<-begun
	require.True(t, f.AwaitDrop(process))
}

// TestWhatIsGivenUpIsLostIfItIsMoreThanTheRequest was about.
func TestWhatIsGivenUpIsLostIfItIsMoreThanTheRequest(t *testing.T) {
	f, d := new(File), new(Description)
	only := request(storepb.LockType_EXCLUSIVE, 0, 9)
	r, errno := f.Begin(d, process)
	require.Zero(t, errno)
	lost, dropped := f.GiveUp(r, only)
	dropped()
	f.End(r, only, false)
	require.False(t, lost)
	require.False(t, d.IsLost())

	take(t, f, d, only)
	more := request(storepb.LockType_EXCLUSIVE, 20, 29)
	r, errno = f.Begin(d, process)
	require.Zero(t, errno)
	lost, dropped = f.GiveUp(r, more)
	dropped()
	f.End(r, more, false)
	require.True(t, lost)
	require.True(t, d.IsLost())
}

// TestALockIsGivenBackUnlessItsOwnerMayHaveMore, which another program may use.
func TestALockIsGivenBackUnlessItsOwnerMayHaveMore(t *testing.T) {
	f, d := new(File), new(Description)
	op := request(storepb.LockType_EXCLUSIVE, 0, 9)
	r, errno := f.Begin(d, process)
	require.Zero(t, errno)
	other, errno := f.Begin(d, process)
	require.Zero(t, errno)
	require.Nil(t, f.GiveBack(r, op), "another request may have the same lock")
	require.True(t, f.End(other, op, false))
	dropped := f.GiveBack(r, op)
	require.NotNil(t, dropped)
	require.True(t, f.End(r, op, false))
	require.True(t, f.IsDropping(process))
	dropped()
	require.Nil(t, f.LockedThrough(process.Number))

	take(t, f, d, op)
	more := request(storepb.LockType_EXCLUSIVE, 20, 29)
	r, errno = f.Begin(d, process)
	require.Zero(t, errno)
	require.Nil(t, f.GiveBack(r, more))
	require.True(t, f.End(r, more, true))
}

// TestALockMayGoWithAReleaseThatCameMeanwhile: nobody knows which of the two was first.
func TestALockMayGoWithAReleaseThatCameMeanwhile(t *testing.T) {
	f, d := new(File), new(Description)
	op := request(storepb.LockType_EXCLUSIVE, 0, 9)
	r, errno := f.Begin(d, process)
	require.Zero(t, errno)
	f.BeginDrop(process, nil)()
	require.False(t, f.End(r, op, true))
}

// TestACloseIsWaitedForOnce: a process may close a copy of a descriptor that it got by fork(2), and no release follows.
func TestACloseIsWaitedForOnce(t *testing.T) {
	d := new(Description)
	require.False(t, d.IsClosing())
	require.False(t, d.MayAwaitRelease())
	d.NoteClose()
	require.True(t, d.IsClosing())
	require.True(t, d.MayAwaitRelease())
	require.False(t, d.MayAwaitRelease(), "a later request on another host")
	d.NoteClose()
	require.True(t, d.MayAwaitRelease(), "after another close")
	after := new(Description)
	after.Restore(d.Save())
	require.True(t, after.IsClosing(), "in the process that goes on with the mount too")
	d.closed = d.closed.Add(-ReleaseWait)
	require.False(t, d.IsClosing())
}

// TestAReleaseIsWaitedForOnce by requests on other hosts: the cluster may not hear of it for long.
func TestAReleaseIsWaitedForOnce(t *testing.T) {
	f, owner := new(File), Owner{storepb.LockKind_FLOCK, 7}
	require.True(t, f.MayAwaitDrop(owner), "it has nothing")
	for range 2 {
		dropped := f.DropLeft(owner, false)
		require.True(t, f.MayAwaitDrop(owner))
		require.False(t, f.MayAwaitDrop(owner))
		dropped()
		require.True(t, f.MayAwaitDrop(owner), "it has nothing any more")
	}
}
