package namespace

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// who is an owner of advisory locks. Anna and Cleo are on one host, Bert and Dora on another.
type who struct{ session, owner uint64 }

var (
	anna, cleo = who{here, 1}, who{here, 2}
	bert, dora = who{there, 1}, who{there, 2}
)

var namesOfOwners = map[who]string{anna: "anna", bert: "bert", cleo: "cleo", dora: "dora"}

const (
	nothing   = storepb.LockType_UNLOCK
	shared    = storepb.LockType_SHARED
	exclusive = storepb.LockType_EXCLUSIVE
)

// lockTree drives the locks of one file.
type lockTree struct {
	*driver
	ino uint64
}

func newLockTree(t *testing.T) *lockTree {
	tr := &lockTree{driver: newDriver(t)}
	tr.ino = tr.file(RootIno, "file")
	t.Cleanup(func() {
		if !t.Failed() {
			require.NoError(t, tr.ns.locks.Check())
			tr.restart()
			require.NoError(t, tr.ns.locks.Check())
		}
	})
	return tr
}

// ask makes a call, whose number is the last one of its session then.
func (tr *lockTree) ask(w who, op *storepb.TakeLock) step {
	if op.GetIno() == 0 {
		op.Ino = tr.ino
	}
	op.Owner, op.Session = w.owner, w.session
	return tr.do(w.session, opOf(op))
}

// flock is flock(2) with LOCK_NB.
func (tr *lockTree) flock(w who, to storepb.LockType) step {
	return tr.ask(w, &storepb.TakeLock{Kind: storepb.LockKind_FLOCK, Type: to})
}

func (tr *lockTree) flockWait(w who, to storepb.LockType) step {
	return tr.ask(w, &storepb.TakeLock{Kind: storepb.LockKind_FLOCK, Type: to, Wait: true})
}

// record is F_SETLK.
func (tr *lockTree) record(w who, to storepb.LockType, start, end uint64) step {
	return tr.ask(w, &storepb.TakeLock{Kind: storepb.LockKind_RECORD, Type: to, Start: start, End: end})
}

// recordWait is F_OFD_SETLKW.
func (tr *lockTree) recordWait(w who, to storepb.LockType, start, end uint64) step {
	return tr.ask(w, &storepb.TakeLock{Kind: storepb.LockKind_RECORD, Type: to, Start: start, End: end, Wait: true})
}

// processWait is F_SETLKW.
func (tr *lockTree) processWait(w who, to storepb.LockType, start, end uint64) step {
	return tr.ask(w, &storepb.TakeLock{Kind: storepb.LockKind_RECORD, Type: to, Start: start, End: end, Wait: true, ByProcess: true})
}

func (tr *lockTree) close(kind storepb.LockKind, who ...who) {
	tr.tb.Helper()
	op := &storepb.DropLocks{Ino: tr.ino, Kind: kind}
	for _, w := range who {
		op.Owners = append(op.Owners, w.owner)
	}
	tr.do(who[0].session, opOf(op)).ok()
}

// interrupt interrupts a call for an exclusive flock.
func (tr *lockTree) interrupt(w who, seq uint64) step {
	return tr.do(w.session, opOf(&storepb.InterruptLock{Seq: seq, Ino: tr.ino, Owner: w.owner, Type: exclusive}))
}

// awaits asks what became of a call for an exclusive flock.
func (tr *lockTree) awaits(w who, seq uint64) storepb.Code {
	return tr.ns.Query(queryOf(&storepb.AwaitLock{
		Session: w.session, Seq: seq, Ino: tr.ino, Owner: w.owner, Type: exclusive,
	})).GetCode()
}

// cancel settles a call whose outcome was not told.
func (tr *lockTree) cancel(w who, seq uint64) {
	tr.tb.Helper()
	tr.apply(&storepb.Command{Session: w.session, Op: opOf(&storepb.Cancel{Seq: seq})}).ok()
}

// acknowledge tells that a session has all replies.
func (tr *lockTree) acknowledge(w who) {
	tr.tb.Helper()
	cmd := tr.next(w.session, opOf(&storepb.DropLocks{}))
	cmd.Acked = cmd.GetSeq() - 1
	tr.apply(cmd).ok()
}

// succeed gives a session to another process.
func (tr *lockTree) succeed(session uint64, started int64) step {
	return tr.apply(&storepb.Command{Session: session, Op: opOf(&storepb.OpenSession{
		Host: tr.hosts[session], BootId: "boot", Started: started,
	})})
}

func (tr *lockTree) setDelay(d time.Duration) {
	tr.tb.Helper()
	tr.do(0, opOf(&storepb.SetLimits{LockDelay: proto.Int64(int64(d))})).ok()
}

// requireLocks compares what is held of the file, by owner and then by range, and who waits, in order.
func (tr *lockTree) requireLocks(want ...string) {
	tr.tb.Helper()
	var got []string
	for _, lock := range tr.ns.Query(queryOf(&storepb.ListAdvisoryLocks{Ino: tr.ino, Viewer: root})).GetAdvisoryLocks() {
		got = append(got, describeAdvisory(lock))
	}
	require.Equal(tr.tb, want, got)
}

// locksOf counts the locks and requests of a session that has not lost them.
func (tr *lockTree) locksOf(session uint64) int {
	count := 0
	tr.ns.locks.Each(func(lock *storepb.AdvisoryLock) bool {
		if lock.GetSession() == session {
			count++
		}
		return true
	})
	return count
}

// heldIn counts the locks that somebody has, or had until a moment ago.
func heldIn(ns *Namespace) int { return ns.locks.Len() - len(requestsIn(ns)) }

func describeAdvisory(lock *storepb.AdvisoryLock) string {
	does := map[storepb.LockType]string{shared: " shares", exclusive: " has"}[lock.GetType()]
	switch {
	case lock.GetInterrupted() != 0:
		does = map[storepb.LockType]string{shared: " wanted to share", exclusive: " wanted"}[lock.GetType()]
	case lock.GetPosition() != 0:
		does = map[storepb.LockType]string{shared: " waits to share", exclusive: " waits for"}[lock.GetType()]
	case lock.GetUntil() != 0:
		does = map[storepb.LockType]string{shared: " shared", exclusive: " had"}[lock.GetType()]
	}
	what := ""
	if lock.GetKind() == storepb.LockKind_RECORD {
		what = fmt.Sprintf(" %d-", lock.GetStart())
		if lock.GetEnd() != math.MaxInt64 {
			what += fmt.Sprint(lock.GetEnd())
		}
	}
	return namesOfOwners[who{lock.GetSession(), lock.GetOwner()}] + does + what
}

func TestFlock(t *testing.T) {
	tr := newLockTree(t)
	tr.flock(anna, shared).ok()
	tr.flock(bert, shared).ok()
	inTheWay := tr.flock(cleo, exclusive).is(storepb.Code_WOULD_BLOCK).GetAdvisoryLocks()
	require.Len(t, inTheWay, 1)
	require.Equal(t, []any{"here", uint64(here), uint64(1)}, []any{inTheWay[0].GetHost(), inTheWay[0].GetSession(), inTheWay[0].GetOwner()})
	tr.requireLocks("anna shares", "bert shares")
	tr.flock(anna, shared).ok()
	tr.flock(anna, nothing).ok()
	tr.flock(anna, nothing).ok()
	tr.flock(bert, exclusive).ok()
	tr.requireLocks("bert has")
	tr.flock(anna, shared).is(storepb.Code_WOULD_BLOCK)
	tr.record(anna, exclusive, 0, math.MaxInt64).ok() // the kinds do not see each other
	tr.flock(bert, exclusive).ok()
	tr.flock(bert, shared).ok()
	tr.flock(anna, shared).ok()
	tr.close(storepb.LockKind_FLOCK, bert)
	tr.requireLocks("anna shares", "anna has 0-")
}

func TestLockSaysWhoseItIs(t *testing.T) {
	tr := newLockTree(t)
	tr.ask(anna, &storepb.TakeLock{Kind: storepb.LockKind_RECORD, Type: exclusive, Start: 3, End: 1 << 63, Pid: 17}).ok()
	taken, seq := tr.now, tr.seqs[here]
	tr.ask(bert, &storepb.TakeLock{Kind: storepb.LockKind_RECORD, Type: shared, Start: 1, End: 5, Pid: 18, Wait: true, ByProcess: true}).
		is(storepb.Code_WAITING)
	want := []*storepb.AdvisoryLock{
		{
			Ino: tr.ino, Kind: storepb.LockKind_RECORD, Type: exclusive, Session: here, Owner: 1, Start: 3, End: math.MaxInt64, Pid: 17,
			Host: "here", Since: taken, Seq: seq, Uid: 7,
		},
		{
			Ino: tr.ino, Kind: storepb.LockKind_RECORD, Type: shared, Session: there, Owner: 1, Start: 1, End: 5, Pid: 18,
			Host: "there", Since: tr.now, Seq: tr.seqs[there], Position: tr.index, ByProcess: true, Uid: 7,
		},
	}
	requireSame(t, &storepb.Result{AdvisoryLocks: want}, tr.ns.Query(queryOf(&storepb.ListAdvisoryLocks{Viewer: root})))
	requireSame(t, &storepb.Result{}, tr.ns.Query(queryOf(&storepb.ListAdvisoryLocks{Ino: tr.ino + 1, Viewer: root})))

	test := func(w who, to storepb.LockType, start, end uint64) *storepb.Result {
		return tr.ns.Query(queryOf(&storepb.TestLock{Session: w.session, Lock: &storepb.TakeLock{
			Ino: tr.ino, Kind: storepb.LockKind_RECORD, Type: to, Owner: w.owner, Start: start, End: end, Session: w.session,
		}}))
	}
	requireSame(t, &storepb.Result{AdvisoryLocks: want[:1]}, test(bert, shared, 0, 3))
	requireSame(t, new(storepb.Result), test(anna, exclusive, 0, math.MaxInt64))
	requireSame(t, new(storepb.Result), test(cleo, exclusive, 0, 2))
	require.Equal(t, storepb.Code_INVALID, test(cleo, exclusive, 2, 1).GetCode())
	tr.record(anna, nothing, 0, math.MaxInt64).ok()
	require.Equal(t, []int64{tr.now}, []int64{tr.ns.Query(queryOf(&storepb.ListAdvisoryLocks{Viewer: root})).GetAdvisoryLocks()[0].GetSince()})
}

func TestFlockConversion(t *testing.T) {
	t.Run("others get it in between", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, shared).ok()
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		tr.flock(anna, exclusive).is(storepb.Code_WOULD_BLOCK)
		tr.requireLocks("bert has")
	})
	t.Run("the old lock is lost", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, shared).ok()
		tr.flock(bert, shared).ok()
		tr.flock(anna, exclusive).is(storepb.Code_WOULD_BLOCK)
		tr.requireLocks("bert shares")
	})
	t.Run("of two", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, shared).ok()
		tr.flock(bert, shared).ok()
		tr.flockWait(anna, exclusive).is(storepb.Code_WAITING)
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		tr.requireLocks("anna has", "bert waits for")
		tr.flock(anna, nothing).ok()
		tr.requireLocks("bert has")
	})
	t.Run("to share", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, exclusive).ok()
		tr.flockWait(bert, shared).is(storepb.Code_WAITING)
		tr.flockWait(cleo, exclusive).is(storepb.Code_WAITING)
		tr.flockWait(anna, shared).is(storepb.Code_WAITING)
		tr.requireLocks("bert shares", "cleo waits for", "anna waits to share")
	})
	t.Run("again while it waits", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(bert, shared).ok()
		tr.flockWait(anna, exclusive).is(storepb.Code_WAITING)
		first := tr.seqs[here]
		tr.interrupt(anna, first).is(storepb.Code_WAITING)
		tr.wait(-time.Second) // both before it has lost its place
		tr.flock(anna, shared).ok()
		tr.flockWait(anna, exclusive).is(storepb.Code_WAITING)
		tr.requireLocks("bert shares", "anna waits for")
	})
}

func TestRecordLocks(t *testing.T) {
	type call struct {
		w          who
		to         storepb.LockType
		start, end uint64
		code       storepb.Code
	}
	const blocked = storepb.Code_WOULD_BLOCK
	for name, test := range map[string]struct {
		calls []call
		want  []string
	}{
		"apart":        {[]call{{anna, exclusive, 0, 3, 0}, {bert, exclusive, 4, 7, 0}, {bert, shared, 3, 3, blocked}}, []string{"anna has 0-3", "bert has 4-7"}},
		"one byte":     {[]call{{anna, exclusive, 5, 5, 0}, {bert, shared, 5, 5, blocked}, {bert, shared, 6, 6, 0}}, []string{"anna has 5-5", "bert shares 6-6"}},
		"to the end":   {[]call{{anna, shared, 5, math.MaxInt64, 0}, {bert, exclusive, 1 << 62, 1 << 62, blocked}}, []string{"anna shares 5-"}},
		"the end":      {[]call{{anna, shared, math.MaxInt64, math.MaxInt64, 0}, {anna, shared, math.MaxInt64 - 1, math.MaxInt64 - 1, 0}}, []string{fmt.Sprintf("anna shares %d-", uint64(math.MaxInt64-1))}},
		"far end":      {[]call{{anna, exclusive, 0, 1<<64 - 1, 0}}, []string{"anna has 0-"}},
		"split":        {[]call{{anna, exclusive, 0, 9, 0}, {anna, nothing, 4, 5, 0}, {bert, exclusive, 4, 5, 0}}, []string{"anna has 0-3", "anna has 6-9", "bert has 4-5"}},
		"head":         {[]call{{anna, exclusive, 2, 9, 0}, {anna, nothing, 0, 4, 0}}, []string{"anna has 5-9"}},
		"tail":         {[]call{{anna, exclusive, 2, 9, 0}, {anna, nothing, 4, math.MaxInt64, 0}}, []string{"anna has 2-3"}},
		"all":          {[]call{{anna, exclusive, 2, 3, 0}, {anna, shared, 5, 6, 0}, {anna, nothing, 0, math.MaxInt64, 0}}, nil},
		"beside":       {[]call{{anna, exclusive, 2, 3, 0}, {anna, nothing, 4, 6, 0}, {anna, nothing, 0, 1, 0}}, []string{"anna has 2-3"}},
		"joined":       {[]call{{anna, shared, 0, 3, 0}, {anna, shared, 8, 9, 0}, {anna, shared, 4, 7, 0}}, []string{"anna shares 0-9"}},
		"overlapping":  {[]call{{anna, shared, 0, 5, 0}, {anna, shared, 3, 9, 0}, {anna, shared, 1, 2, 0}}, []string{"anna shares 0-9"}},
		"types apart":  {[]call{{anna, shared, 0, 3, 0}, {anna, exclusive, 4, 7, 0}}, []string{"anna shares 0-3", "anna has 4-7"}},
		"upgrade":      {[]call{{anna, shared, 0, 9, 0}, {anna, exclusive, 4, 5, 0}}, []string{"anna shares 0-3", "anna has 4-5", "anna shares 6-9"}},
		"downgrade":    {[]call{{anna, exclusive, 0, 9, 0}, {anna, shared, 0, 9, 0}, {bert, shared, 9, 9, 0}}, []string{"anna shares 0-9", "bert shares 9-9"}},
		"not upgraded": {[]call{{anna, shared, 0, 9, 0}, {bert, shared, 9, 9, 0}, {anna, exclusive, 0, 9, blocked}}, []string{"anna shares 0-9", "bert shares 9-9"}},
		"over all":     {[]call{{anna, shared, 1, 1, 0}, {anna, exclusive, 3, 3, 0}, {anna, shared, 5, 5, 0}, {anna, exclusive, 0, 9, 0}}, []string{"anna has 0-9"}},
		"invalid":      {[]call{{anna, shared, 2, 1, storepb.Code_INVALID}, {anna, shared, 1 << 63, 1<<64 - 1, storepb.Code_INVALID}, {anna, 7, 1, 2, storepb.Code_INVALID}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newLockTree(t)
			for _, c := range test.calls {
				tr.acknowledge(c.w)
				tr.record(c.w, c.to, c.start, c.end).is(c.code)
			}
			tr.requireLocks(test.want...)
		})
	}
}

func TestRecordUpgradeIsAtomic(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, shared, 0, 9).ok()
	tr.record(bert, shared, 9, 9).ok()
	tr.recordWait(anna, exclusive, 0, 9).is(storepb.Code_WAITING)
	tr.requireLocks("anna shares 0-9", "bert shares 9-9", "anna waits for 0-9")
	tr.recordWait(cleo, exclusive, 4, 4).is(storepb.Code_WAITING)
	tr.close(storepb.LockKind_RECORD, bert)
	tr.requireLocks("anna has 0-9", "cleo waits for 4-4")
}

func TestClose(t *testing.T) {
	tr := newLockTree(t)
	tr.record(anna, exclusive, 0, 1).ok()
	tr.record(anna, shared, 4, 5).ok()
	tr.record(cleo, shared, 4, 5).ok()
	tr.flock(anna, exclusive).ok()
	tr.recordWait(bert, exclusive, 0, 1).is(storepb.Code_WAITING)
	tr.recordWait(bert, exclusive, 4, 4).is(storepb.Code_WAITING)
	tr.recordWait(dora, shared, 4, 4).is(storepb.Code_WAITING)
	tr.close(storepb.LockKind_RECORD, anna, who{here, 9})
	tr.requireLocks("anna has", "cleo shares 4-5", "bert has 0-1", "bert waits for 4-4", "dora waits to share 4-4")
	tr.close(storepb.LockKind_RECORD, bert)
	tr.requireLocks("anna has", "cleo shares 4-5", "dora shares 4-4")
}

func TestLockOfSession(t *testing.T) {
	tr := newLockTree(t)
	op := func(session uint64) *storepb.Op {
		return opOf(&storepb.TakeLock{Ino: tr.ino, Type: exclusive, Owner: 1, Session: session})
	}
	tr.do(here, op(there)).is(storepb.Code_SESSION_LOST)
	tr.do(here, op(0)).is(storepb.Code_SESSION_LOST)
	tr.do(0, op(0)).is(storepb.Code_INVALID)
	tr.do(here, opOf(&storepb.TakeLock{Ino: tr.ino, Kind: 7, Type: exclusive, Session: here})).is(storepb.Code_INVALID)
	tr.do(here, opOf(&storepb.TakeLock{Ino: RootIno, Type: exclusive, Session: here})).is(storepb.Code_IS_DIRECTORY)
	tr.do(here, opOf(&storepb.TakeLock{Ino: 99, Type: exclusive, Session: here})).is(storepb.Code_STALE)
	tr.do(0, opOf(&storepb.DropLocks{Ino: tr.ino, Owners: []uint64{1}})).ok()
	tr.do(0, opOf(&storepb.InterruptLock{Seq: 1, Ino: tr.ino})).is(storepb.Code_NOT_FOUND)
	tr.requireLocks()
}

func TestLocksOfRemovedFile(t *testing.T) {
	tr := newLockTree(t)
	tr.flock(anna, exclusive).ok()
	tr.record(anna, exclusive, 0, 9).ok()
	tr.unlink(here, RootIno, "file").ok()
	tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
	tr.wait(time.Hour)
	tr.flock(cleo, exclusive).is(storepb.Code_STALE)
	tr.record(anna, nothing, 3, 9).ok()
	tr.requireLocks("anna has", "anna has 0-2", "bert waits for")
	tr.restart()
	tr.flock(anna, nothing).ok()
	tr.requireLocks("bert has", "anna has 0-2")
	tr.close(storepb.LockKind_FLOCK, bert)
	tr.close(storepb.LockKind_RECORD, anna)
	tr.requireLocks()
}

func TestTooManyLocks(t *testing.T) {
	tr := newLockTree(t)
	tr.limit(&storepb.SetLimits{MaxLocksPerUser: 10})
	other := tr.file(RootIno, "other")
	tr.record(anna, exclusive, 0, 10).ok()
	for i := range uint64(9) {
		tr.ask(anna, &storepb.TakeLock{Ino: other, Kind: storepb.LockKind_RECORD, Type: shared, Start: 2 * i, End: 2 * i}).ok()
	}
	tr.record(anna, exclusive, 20, 20).is(storepb.Code_NO_LOCKS)
	tr.recordWait(anna, exclusive, 20, 20).is(storepb.Code_NO_LOCKS)
	tr.flock(bert, exclusive).ok()
	tr.record(anna, nothing, 5, 5).is(storepb.Code_NO_LOCKS) // there would be one more
	tr.record(anna, nothing, 5, 10).ok()
	tr.record(anna, nothing, 0, 10).ok()
	tr.recordWait(anna, exclusive, 20, 20).ok()
	tr.apply(&storepb.Command{Session: here, Op: opOf(&storepb.CloseSession{})}).ok()
	tr.requireLocks("bert has")
	require.Zero(t, tr.locksOf(here))
}

// TestOneUserLeavesLocksToOthers, on the same host and in the same file.
func TestOneUserLeavesLocksToOthers(t *testing.T) {
	tr := newLockTree(t)
	tr.limit(&storepb.SetLimits{MaxLocksPerUser: 10, MaxLocksPerFile: 15})
	take := func(w who, uid uint32, at uint64) step {
		op := &storepb.TakeLock{Ino: tr.ino, Kind: storepb.LockKind_RECORD, Type: exclusive, Start: 2 * at, End: 2 * at, Owner: w.owner, Session: w.session}
		cmd := tr.next(w.session, opOf(op))
		cmd.Caller.Uid = uid
		return tr.apply(cmd)
	}
	for i := range uint64(10) {
		take(anna, uidAnne, i).ok()
	}
	refused := take(anna, uidAnne, 20).is(storepb.Code_NO_LOCKS)
	require.Contains(t, refused.GetMessage(), "--max-locks-per-user")
	tr.restart()
	take(anna, uidAnne, 20).is(storepb.Code_NO_LOCKS)
	var uses []*storepb.BudgetUse
	for _, use := range tr.ns.Query(queryOf(&storepb.ListQuotas{Budgets: true})).GetBudgets() {
		if use.GetBudget() == kernelLocks && use.GetUid() == uidAnne {
			uses = append(uses, use)
		}
	}
	require.Len(t, uses, 2, "on the host, and in the file")
	require.Equal(t, []uint64{10, 10, 10, 15}, []uint64{uses[0].GetUsed(), uses[0].GetMost(), uses[1].GetUsed(), uses[1].GetMost()})
	require.Equal(t, "file", string(uses[1].GetPath()))
	take(cleo, uidBert, 20).ok()
	take(cleo, 0, 21).ok()
	for i := range uint64(5) {
		take(bert, uidAnne, 30+i).ok()
	}
	refused = take(bert, uidAnne, 40).is(storepb.Code_NO_LOCKS)
	require.Contains(t, refused.GetMessage(), "--max-locks-per-file")
	take(dora, uidBert, 41).ok()
	tr.close(storepb.LockKind_RECORD, anna)
	take(bert, uidAnne, 40).ok()
}

func TestLockDelay(t *testing.T) {
	ends := map[string]func(tr *lockTree){
		"given up":  func(tr *lockTree) { tr.giveUp(here) },
		"succeeded": func(tr *lockTree) { tr.succeed(here, 2).ok() },
		"closed while in use": func(tr *lockTree) {
			tr.apply(&storepb.Command{Session: here, Op: opOf(&storepb.CloseSession{InUse: true})}).ok()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			tr := newLockTree(t)
			tr.flock(anna, exclusive).ok()
			tr.record(anna, shared, 0, 9).ok()
			tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
			tr.recordWait(cleo, exclusive, 20, 20).ok()
			tr.recordWait(dora, exclusive, 20, 20).is(storepb.Code_WAITING)
			tr.recordWait(cleo, exclusive, 0, 0).is(storepb.Code_WAITING)
			end(tr)
			ended := tr.now
			tr.requireLocks("anna had", "anna shared 0-9", "cleo had 20-20", "bert waits for", "dora waits for 20-20")
			tr.record(bert, shared, 0, 9).ok()
			tr.record(bert, exclusive, 0, 9).is(storepb.Code_WOULD_BLOCK)
			tr.restart()
			require.False(t, tr.ns.Due(ended+int64(DefaultLockDelay)-1))
			require.True(t, tr.ns.Due(ended+int64(DefaultLockDelay)))
			tr.now = ended + int64(DefaultLockDelay) - int64(time.Second) - 1
			tr.tick(time.Second)
			require.Equal(t, 4, heldIn(tr.ns))
			tr.now = ended + int64(DefaultLockDelay) - int64(time.Second)
			tr.tick(time.Second)
			tr.requireLocks("bert has", "bert shares 0-9", "dora has 20-20")
			require.False(t, tr.ns.Due(tr.now+int64(time.Hour)))
			require.Zero(t, tr.locksOf(here))
		})
	}
	for name, end := range ends {
		t.Run("off, "+name, func(t *testing.T) {
			tr := newLockTree(t)
			tr.setDelay(0)
			tr.flock(anna, exclusive).ok()
			tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
			end(tr)
			tr.requireLocks("bert has")
		})
	}
	for name, end := range ends {
		t.Run("of no use to a session, "+name, func(t *testing.T) {
			tr := newLockTree(t)
			tr.apply(&storepb.Command{Session: here, Op: opOf(&storepb.CloseSession{})}).ok()
			tr.apply(&storepb.Command{Session: here, Op: opOf(&storepb.OpenSession{
				Host: tr.hosts[here], BootId: "boot", NoLockDelay: true,
			})}).ok()
			tr.flock(anna, exclusive).ok()
			tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
			tr.restart()
			end(tr)
			tr.requireLocks("bert has")
		})
	}
	t.Run("no end but a farewell", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, exclusive).ok()
		tr.recordWait(anna, exclusive, 0, 0).ok()
		tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
		tr.apply(&storepb.Command{Session: here, Op: opOf(&storepb.CloseSession{})}).ok()
		tr.requireLocks("bert has")
	})
	t.Run("farewell of one that ended", func(t *testing.T) {
		tr := newLockTree(t)
		tr.flock(anna, exclusive).ok()
		tr.giveUp(here)
		tr.apply(&storepb.Command{Session: here, Op: opOf(&storepb.CloseSession{})}).ok()
		tr.requireLocks("anna had")
		tr.flock(bert, shared).is(storepb.Code_WOULD_BLOCK)
	})
	t.Run("set", func(t *testing.T) {
		tr := newLockTree(t)
		tr.setDelay(time.Minute)
		tr.do(0, opOf(&storepb.SetLimits{})).ok()
		tr.flock(anna, exclusive).ok()
		tr.giveUp(here)
		tr.tick(59 * time.Second)
		tr.requireLocks("anna had")
		tr.tick(time.Second)
		tr.requireLocks()
	})
}

func TestSuccessor(t *testing.T) {
	tr := newLockTree(t)
	tr.succeed(here, 5).ok()
	tr.flock(anna, shared).ok()
	tr.flock(bert, shared).ok()
	tr.flockWait(cleo, exclusive).is(storepb.Code_WAITING)
	tr.succeed(here, 5).ok() // it asks again
	tr.succeed(here, 4).is(storepb.Code_SESSION_UNKNOWN)
	tr.requireLocks("anna shares", "bert shares", "cleo waits for")

	tr.succeed(here, 6).ok()
	tr.requireLocks("anna shared", "bert shares")
	tr.flock(anna, shared).ok() // the owners of the successor may have the same numbers
	tr.requireLocks("anna shares", "anna shared", "bert shares")
	tr.flock(anna, exclusive).is(storepb.Code_WOULD_BLOCK)
	tr.flock(anna, shared).ok()
	tr.restart()
	tr.tick(DefaultLockDelay)
	tr.requireLocks("anna shares", "bert shares")
	tr.giveUp(here)
	tr.succeed(here, 7).is(storepb.Code_SESSION_UNKNOWN)
}

func TestTwoSuccessorsAtOnce(t *testing.T) {
	tr := newLockTree(t)
	stop := func() { tr.now -= int64(time.Second) }
	tr.record(anna, shared, 0, 9).ok()
	stop()
	tr.succeed(here, 1).ok()
	stop()
	tr.record(anna, shared, 0, 4).ok()
	stop()
	tr.succeed(here, 2).ok()
	stop()
	tr.record(anna, shared, 0, 2).ok()
	tr.requireLocks("anna shares 0-2", "anna shared 0-9", "anna shared 0-4")
	tr.tick(DefaultLockDelay)
	tr.requireLocks("anna shares 0-2")
}

// queryOf wraps what is asked.
func queryOf(asked proto.Message) *storepb.Query {
	query := new(storepb.Query)
	message := query.ProtoReflect()
	fields := message.Descriptor().Oneofs().Get(0).Fields()
	for i := range fields.Len() {
		if fields.Get(i).Message() == asked.ProtoReflect().Descriptor() {
			message.Set(fields.Get(i), message.NewField(fields.Get(i)))
			proto.Merge(message.Mutable(fields.Get(i)).Message().Interface(), asked)
			return query
		}
	}
	panic(fmt.Sprintf("%T is not a query", asked))
}
