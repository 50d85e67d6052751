package namespace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

func createOp(parent uint64, name string, exclusive bool) *storepb.Op {
	return opOf(&storepb.Create{Parent: parent, Name: []byte(name), Mode: someFile, Exclusive: exclusive})
}

func (tr *driver) cancel(cmd *storepb.Command) step {
	return tr.apply(&storepb.Command{Session: cmd.GetSession(), Op: opOf(&storepb.Cancel{Seq: cmd.GetSeq()})})
}

func noReplace(parent uint64, name string, newParent uint64, newName string) *storepb.Op {
	op := renameOp(parent, name, newParent, newName)
	op.GetRename().NoReplace = true
	return op
}

func TestRetryGetsTheFirstReply(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, createOp(RootIno, "f", true))
	first := tr.apply(cmd).ok()
	tr.unlink(there, RootIno, "f").ok()
	requireSame(t, first, tr.apply(cmd).ok())
	require.Zero(t, tr.at(RootIno, "f"), "it is not done again")

	refused := tr.next(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("f")}))
	tr.apply(refused).is(storepb.Code_NOT_FOUND)
	tr.file(RootIno, "f")
	tr.apply(refused).is(storepb.Code_NOT_FOUND)
	tr.ns = restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	requireSame(t, first, tr.apply(cmd).ok())
}

func TestRetryAfterAcknowledgementIsDuplicate(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, createOp(RootIno, "f", true))
	tr.apply(cmd).ok()
	ack := tr.next(here, createOp(RootIno, "g", true))
	ack.Acked = cmd.GetSeq()
	tr.apply(ack).ok()
	tr.apply(cmd).is(storepb.Code_DUPLICATE)
	tr.cancel(cmd).is(storepb.Code_DUPLICATE)
	require.NotZero(t, tr.at(RootIno, "f"))
}

func TestCommandCannotAcknowledgeItself(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, createOp(RootIno, "f", true))
	cmd.Acked = 1 << 60
	first := tr.apply(cmd).ok()
	requireSame(t, first, tr.apply(cmd).ok())
}

func TestUnacknowledgedRepliesAreLimited(t *testing.T) {
	tr := newDriver(t)
	for range MaxReplies {
		tr.do(here, opOf(&storepb.SetLimits{})).ok()
	}
	cmd := tr.next(here, createOp(RootIno, "f", true))
	tr.apply(cmd).is(storepb.Code_TOO_MANY_REQUESTS)
	require.Zero(t, tr.at(RootIno, "f"))
	cmd.Acked = 1
	tr.apply(cmd).ok()
	require.NotZero(t, tr.at(RootIno, "f"))
}

func TestSessionMustBeOpen(t *testing.T) {
	tr := newDriver(t)
	tr.do(9, createOp(RootIno, "f", true)).is(storepb.Code_SESSION_FORGOTTEN)
	tr.do(there, createOp(RootIno, "f", true)).ok()
	tr.do(there, opOf(&storepb.CloseSession{})).ok()
	tr.do(there, createOp(RootIno, "g", true)).is(storepb.Code_SESSION_FORGOTTEN)
	require.NotZero(t, tr.at(RootIno, "f"), "what it made stays")
	tr.do(0, opOf(&storepb.OpenSession{})).is(storepb.Code_INVALID)
}

func TestSessionStringsAreLimited(t *testing.T) {
	tr := newDriver(t)
	long := make([]byte, MaxName+1)
	tr.do(9, opOf(&storepb.OpenSession{Host: string(long)})).is(storepb.Code_INVALID)
	tr.do(9, opOf(&storepb.OpenSession{BootId: string(long)})).is(storepb.Code_INVALID)
}

// TestEndedSession: its replies stay for a week, its calls can be settled, nothing new is done.
func TestEndedSession(t *testing.T) {
	tr := newDriver(t)
	made := tr.next(there, createOp(RootIno, "f", true))
	first := tr.apply(made).ok()
	tr.do(here, opOf(&storepb.EndSession{Id: there, IfActive: tr.index - 1})).is(storepb.Code_CONFLICT)
	tr.do(here, opOf(&storepb.EndSession{Id: there, IfActive: tr.index - 1})).ok()
	tr.do(there, opOf(&storepb.OpenSession{Host: "host", BootId: "boot"})).is(storepb.Code_SESSION_UNKNOWN)
	tr.do(there, createOp(RootIno, "g", true)).is(storepb.Code_SESSION_UNKNOWN)
	tr.wait(7*24*time.Hour - time.Hour)
	requireSame(t, first, tr.apply(made).ok())
	tr.cancel(made).ok()
	require.Zero(t, tr.at(RootIno, "f"))
	tr.wait(time.Hour)
	tr.apply(made).is(storepb.Code_SESSION_FORGOTTEN)
	tr.cancel(made).is(storepb.Code_SESSION_FORGOTTEN)
}

// TestEndedSessionsAreKept: many others that end do not make a call be done twice, or be left behind.
func TestEndedSessionsAreKept(t *testing.T) {
	tr := newDriver(t)
	made := tr.next(there, createOp(RootIno, "f", true))
	first := tr.apply(made).ok()
	unused := tr.next(here, createOp(RootIno, "g", true))
	tr.giveUp(there)
	tr.giveUp(here)
	for id := uint64(10); id < 10_000; id++ {
		tr.open(id, "elsewhere", "boot").ok()
		tr.do(id, createOp(RootIno, "f", true)).is(storepb.Code_EXISTS)
		tr.giveUp(id)
	}
	tr.restart()
	requireSame(t, first, tr.apply(made).ok())
	tr.apply(unused).is(storepb.Code_SESSION_UNKNOWN)
	tr.cancel(made).ok()
	require.Zero(t, tr.at(RootIno, "f"))
}

// TestEndedSessionsAreBounded, by what is kept of them. What comes back after that is not done twice either.
func TestEndedSessionsAreBounded(t *testing.T) {
	tr := newDriver(t)
	made := tr.next(there, createOp(RootIno, "f", true))
	tr.apply(made).ok()
	tr.giveUp(there)
	for id := uint64(10); tr.ns.sessions.endedKept <= endedLimit; id++ {
		tr.open(id, "elsewhere", "boot").ok()
		for seq := range uint64(2 * MaxReplies) {
			tr.apply(&storepb.Command{Session: id, Op: opOf(&storepb.Cancel{Seq: seq + 1})}).ok()
		}
		tr.giveUp(id)
	}
	require.Less(t, tr.ns.sessions.endedKept, endedLimit+2*MaxReplies+2)
	tr.apply(made).is(storepb.Code_SESSION_FORGOTTEN)
	require.LessOrEqual(t, tr.ns.sessions.endedKept, endedLimit)
	require.Positive(t, tr.ns.sessions.ended.Len())
	requireRepliesConsistent(t, tr.ns)
}

// TestEndedSessionsMakeRoom: those that have ended do not count against the limit.
func TestEndedSessionsMakeRoom(t *testing.T) {
	tr := newDriver(t)
	tr.do(0, opOf(&storepb.SetLimits{MaxSessions: 3})).ok()
	for id := uint64(10); id < 30; id++ {
		tr.open(id, "elsewhere", "boot").ok()
		tr.do(id, createOp(RootIno, "f", false)).ok()
		tr.open(id+100, "elsewhere", "boot").is(storepb.Code_TOO_MANY_REQUESTS)
		tr.giveUp(id)
	}
}

// TestOneHostLeavesSessionsToOthers until it closes one of its own.
func TestOneHostLeavesSessionsToOthers(t *testing.T) {
	tr := newDriver(t)
	tr.do(0, opOf(&storepb.SetLimits{MaxSessionsPerHost: 3})).ok()
	for id := uint64(10); id < 13; id++ {
		tr.open(id, "greedy", "boot").ok()
	}
	refused := tr.open(13, "greedy", "boot").is(storepb.Code_TOO_MANY_REQUESTS)
	require.Contains(t, refused.GetMessage(), "--max-sessions-per-host")
	tr.open(12, "greedy", "boot").ok() // again
	tr.open(20, "modest", "boot").ok()
	tr.restart()
	tr.open(13, "greedy", "boot").is(storepb.Code_TOO_MANY_REQUESTS)
	tr.apply(&storepb.Command{Session: 10, Op: opOf(&storepb.CloseSession{})}).ok()
	tr.open(13, "greedy", "boot").ok()
}

// TestCancelUndoes: what was made is gone, and a retry is told so.
func TestCancelUndoes(t *testing.T) {
	for name, made := range map[string]*storepb.Op{
		"exclusive create": createOp(RootIno, "new", true),
		"mkdir":            opOf(&storepb.Create{Parent: RootIno, Name: []byte("new"), Mode: someDir}),
		"link":             opOf(&storepb.Link{Ino: 2, Parent: RootIno, Name: []byte("new")}),
		"rename NOREPLACE": noReplace(RootIno, "old", RootIno, "new"),
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			old := tr.file(RootIno, "old")
			cmd := tr.next(here, made)
			tr.apply(cmd).ok()
			require.NotZero(t, tr.at(RootIno, "new"))
			for range 2 {
				tr.cancel(cmd).ok()
				require.Equal(t, []string{"old"}, tr.names())
				require.Equal(t, old, tr.at(RootIno, "old"))
				require.EqualValues(t, 1, tr.attr(old).GetNlink())
				tr.apply(cmd).is(storepb.Code_CANCELLED)
			}
			requireConsistent(t, tr.ns)
		})
	}
}

func TestCancelBeforeItComes(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, createOp(RootIno, "f", true))
	tr.cancel(cmd).ok()
	tr.apply(cmd).is(storepb.Code_CANCELLED)
	require.Zero(t, tr.at(RootIno, "f"))
	tr.do(here, createOp(RootIno, "f", true)).ok()
	tr.apply(cmd).is(storepb.Code_CANCELLED)
}

// TestCancelKeeps: what others have made of a name is theirs.
func TestCancelKeeps(t *testing.T) {
	takes := func(tr *driver, ino uint64, kind storepb.LockKind, wait bool) step {
		return tr.do(there, opOf(&storepb.TakeLock{Ino: ino, Kind: kind, Type: exclusive, Owner: 1, Session: there, End: 9, Wait: wait}))
	}
	for name, between := range map[string]func(tr *driver, ino uint64){
		"content that changed": func(tr *driver, ino uint64) { tr.write(there, ino, "theirs").ok() },
		"content that changed and is as it was": func(tr *driver, ino uint64) {
			tr.write(there, ino, "theirs").ok()
			tr.write(there, ino, "").ok()
		},
		"content that the same mount changed": func(tr *driver, ino uint64) { tr.write(here, ino, "theirs").ok() },
		"a mode that is set": func(tr *driver, ino uint64) {
			tr.do(there, opOf(&storepb.SetAttr{Ino: ino, Mode: proto.Uint32(0o644)})).ok()
		},
		"an attribute": func(tr *driver, ino uint64) {
			tr.do(there, opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.theirs"), Value: []byte("1")})).ok()
		},
		"another link": func(tr *driver, ino uint64) { tr.link(ino, RootIno, "theirs").ok() },
		"a flock":      func(tr *driver, ino uint64) { takes(tr, ino, storepb.LockKind_FLOCK, false).ok() },
		"a record lock": func(tr *driver, ino uint64) {
			takes(tr, ino, storepb.LockKind_RECORD, false).ok()
		},
		"a lock of a session that ended": func(tr *driver, ino uint64) {
			takes(tr, ino, storepb.LockKind_FLOCK, false).ok()
			tr.giveUp(there)
		},
		"a lock that is waited for": func(tr *driver, ino uint64) {
			tr.do(here, opOf(&storepb.TakeLock{Ino: ino, Type: exclusive, Owner: 1, Session: here})).ok()
			takes(tr, ino, storepb.LockKind_FLOCK, true).is(storepb.Code_WAITING)
			tr.do(there, opOf(&storepb.InterruptLock{Seq: tr.seqs[there], Ino: ino, Owner: 1, Type: exclusive})).is(storepb.Code_WAITING)
			tr.wait(-time.Second) // it keeps its place for two
			tr.do(here, opOf(&storepb.DropLocks{Ino: ino, Owners: []uint64{1}})).ok()
		},
		"another inode": func(tr *driver, _ uint64) {
			tr.unlink(there, RootIno, "new").ok()
			tr.do(there, createOp(RootIno, "new", true)).ok()
		},
		"a replacement": func(tr *driver, _ uint64) {
			tr.do(there, createOp(RootIno, "tmp", true)).ok()
			tr.do(there, renameOp(RootIno, "tmp", RootIno, "new")).ok()
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			cmd := tr.next(here, createOp(RootIno, "new", true))
			between(tr, tr.apply(cmd).ok().GetAttr().GetIno())
			tr.restart()
			theirs := tr.at(RootIno, "new")
			tr.cancel(cmd).ok()
			require.Equal(t, theirs, tr.at(RootIno, "new"))
		})
	}
}

// TestCancelKeepsWhatWasNotExclusive: its caller cannot tell who made it, and others may use it.
func TestCancelKeepsWhatWasNotExclusive(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, createOp(RootIno, "new", false))
	tr.apply(cmd).ok()
	tr.cancel(cmd).ok()
	require.Equal(t, []string{"new"}, tr.names())
	tr.apply(cmd).is(storepb.Code_CANCELLED)
}

// TestNobodyLocksWhatWasTakenBack: who has opened it meanwhile is told to open the name again, where somebody else may have
// locked another file by then. That goes for writes too, also on the mount that made it.
func TestNobodyLocksWhatWasTakenBack(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, createOp(RootIno, "new", true))
	ino := tr.apply(cmd).ok().GetAttr().GetIno()
	tr.cancel(cmd).ok()
	tr.restart()
	for _, session := range []uint64{here, there} {
		for _, wait := range []bool{false, true} {
			for _, kind := range []storepb.LockKind{storepb.LockKind_FLOCK, storepb.LockKind_RECORD} {
				lock := &storepb.TakeLock{Ino: ino, Kind: kind, Type: shared, Owner: 1, Session: session, Wait: wait}
				tr.do(session, opOf(lock)).is(storepb.Code_STALE)
				lock.Type = nothing
				tr.do(session, opOf(lock)).ok()
			}
		}
		tr.write(session, ino, "x").is(storepb.Code_STALE)
		tr.do(session, opOf(&storepb.Pin{Ino: ino})).is(storepb.Code_STALE)
	}
}

// TestCancelOfNamesGivenToLockedFiles: a lock that was there before tells nothing of who uses the name, one that came since does.
func TestCancelOfNamesGivenToLockedFiles(t *testing.T) {
	for name, made := range map[string]*storepb.Op{
		"link":             opOf(&storepb.Link{Ino: 2, Parent: RootIno, Name: []byte("new")}),
		"rename NOREPLACE": noReplace(RootIno, "old", RootIno, "new"),
	} {
		for _, since := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, since: %v", name, since), func(t *testing.T) {
				tr := newDriver(t)
				ino := tr.file(RootIno, "old")
				lock := opOf(&storepb.TakeLock{Ino: ino, Type: shared, Owner: 1, Session: there})
				if !since {
					tr.do(there, lock).ok()
				}
				cmd := tr.next(here, made)
				tr.apply(cmd).ok()
				if since {
					tr.do(there, lock).ok()
				}
				tr.cancel(cmd).ok()
				require.Equal(t, since, tr.at(RootIno, "new") != 0)
			})
		}
	}
}

func TestCancelKeepsDirectoryInUse(t *testing.T) {
	tr := newDriver(t)
	cmd := tr.next(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("d"), Mode: someDir}))
	tr.do(there, createOp(tr.apply(cmd).ok().GetAttr().GetIno(), "f", true)).ok()
	tr.cancel(cmd).ok()
	require.NotZero(t, tr.at(RootIno, "d"))
}

// TestCancelKeepsSameInodeNamedAgain: a token that changes hands by link or by mv -n is the same inode
// under the same name for each of its holders; cancelling an early one must not free it for the last.
func TestCancelKeepsSameInodeNamedAgain(t *testing.T) {
	tr := newDriver(t)
	token := tr.file(RootIno, "token")
	early := tr.next(here, opOf(&storepb.Link{Ino: token, Parent: RootIno, Name: []byte("lock")}))
	tr.apply(early).ok()
	tr.unlink(there, RootIno, "lock").ok()
	tr.do(there, opOf(&storepb.Link{Ino: token, Parent: RootIno, Name: []byte("lock")})).ok()
	tr.cancel(early).ok()
	require.Equal(t, token, tr.at(RootIno, "lock"))
	tr.unlink(there, RootIno, "lock").ok()

	// Renames over the name keep its place in listings, but not its maker.
	early = tr.next(here, opOf(&storepb.Link{Ino: token, Parent: RootIno, Name: []byte("lock")}))
	tr.apply(early).ok()
	tr.do(there, opOf(&storepb.Link{Ino: token, Parent: RootIno, Name: []byte("token2")})).ok()
	tr.file(RootIno, "other")
	tr.do(there, renameOp(RootIno, "other", RootIno, "lock")).ok()
	tr.do(there, renameOp(RootIno, "token2", RootIno, "lock")).ok()
	tr.cancel(early).ok()
	require.Equal(t, token, tr.at(RootIno, "lock"))
	tr.unlink(there, RootIno, "lock").ok()

	early = tr.next(here, noReplace(RootIno, "token", RootIno, "held"))
	tr.apply(early).ok()
	tr.do(there, renameOp(RootIno, "held", RootIno, "token")).ok()
	tr.do(there, noReplace(RootIno, "token", RootIno, "held")).ok()
	tr.cancel(early).ok()
	require.Equal(t, token, tr.at(RootIno, "held"))
}

func TestCancelOfRenameWithoutWayBack(t *testing.T) {
	tr := newDriver(t)
	tr.file(RootIno, "old")
	cmd := tr.next(here, noReplace(RootIno, "old", RootIno, "new"))
	tr.apply(cmd).ok()
	other := tr.file(RootIno, "old")
	tr.cancel(cmd).ok()
	require.Equal(t, []string{"old"}, tr.names())
	require.Equal(t, other, tr.at(RootIno, "old"))

	dir := tr.mkdir(RootIno, "dir")
	tr.file(dir, "old")
	elsewhere := tr.mkdir(RootIno, "elsewhere")
	cmd = tr.next(here, noReplace(dir, "old", elsewhere, "new"))
	tr.apply(cmd).ok()
	tr.rmdir(RootIno, "dir").ok()
	tr.cancel(cmd).ok()
	require.Zero(t, tr.at(elsewhere, "new"))
	requireConsistent(t, tr.ns)
}
