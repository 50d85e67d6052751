package namespace

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// ownedFacts are of a lock that only its owner removes.
func ownedFacts(owner string, expires int64) *storepb.Facts {
	return &storepb.Facts{Format: storepb.Format_FORRST, Holder: owner, Host: "here", ExpiresAt: expires, Guard: storepb.Guard_OWNER, OnStale: storepb.OnStale_REMOVE}
}

// filledOp makes a lock with content in the root directory.
func filledOp(name string, facts *storepb.Facts) *storepb.Create {
	return &storepb.Create{
		Parent: RootIno, Name: []byte(name), Mode: someFile, Exclusive: true, Content: []byte("content"), Facts: facts,
	}
}

func unlinkOp(name string) *storepb.Unlink {
	return &storepb.Unlink{Parent: RootIno, Name: []byte(name)}
}

func TestCreatedWithContent(t *testing.T) {
	tr := newDriver(t)
	before := tr.lastEvent()
	result := tr.do(here, opOf(filledOp("lock", ownedFacts("me", 0)))).ok()
	require.EqualValues(t, len("content"), result.GetAttr().GetSize())
	require.Equal(t, "content", tr.content(result.GetAttr().GetIno()))
	event := tr.requireEvents(before, "lock_acquired lock")[0]
	require.Equal(t, "me", event.GetHolder(), "one event tells it all")
	require.Equal(t, "me", tr.lock("lock").GetFacts().GetHolder())
	tr.restart()
	require.Equal(t, tr.index, tr.token("lock"))

	tr.do(there, opOf(filledOp("lock", ownedFacts("you", 0)))).is(storepb.Code_EXISTS)
	require.Equal(t, "me", tr.lock("lock").GetFacts().GetHolder())
}

func TestOnlyExclusiveCreationOfFileBringsContent(t *testing.T) {
	tr := newDriver(t)
	for code, change := range map[*storepb.Create]storepb.Code{
		{}:                                 storepb.Code_INVALID,
		{Exclusive: true, Mode: someDir}:   storepb.Code_INVALID,
		{Exclusive: true, Content: tooBig}: storepb.Code_FILE_TOO_BIG,
		{Exclusive: true, Facts: &storepb.Facts{Holder: strings.Repeat("x", maxFacts+1)}}: storepb.Code_INVALID,
		{Exclusive: true, Facts: &storepb.Facts{Format: 1 << 8}}:                          storepb.Code_INVALID,
		{Exclusive: true, Facts: &storepb.Facts{Guard: -1}}:                               storepb.Code_INVALID,
		{Exclusive: true, Facts: &storepb.Facts{OnStale: 99}}:                             storepb.Code_INVALID,
	} {
		op := filledOp("lock", nil)
		op.Exclusive = code.GetExclusive()
		if code.GetMode() != 0 {
			op.Mode = code.GetMode()
		}
		if code.GetContent() != nil {
			op.Content = code.GetContent()
		}
		op.Facts = code.GetFacts()
		tr.do(here, opOf(op)).is(change)
		tr.requireNone("lock")
	}
}

// A creation that nobody was told of is taken back with its content, unless somebody has written another one.
func TestCancelledCreationWithContent(t *testing.T) {
	for name, facts := range map[string]*storepb.Facts{"a lock": ownedFacts("me", 0), "of no format": nil} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			made := tr.next(here, opOf(filledOp("lock", facts)))
			tr.apply(made).ok()
			tr.restart()
			tr.cancel(made).ok()
			tr.requireNone("lock")
			tr.apply(made).is(storepb.Code_CANCELLED)
			tr.requireNone("lock")

			late := tr.next(here, opOf(filledOp("late", facts)))
			tr.cancel(late).ok()
			tr.apply(late).is(storepb.Code_CANCELLED)
			tr.requireNone("late")
		})
	}
	tr := newDriver(t)
	facts := towerFacts("me")
	facts.Host = "here"
	made := tr.next(here, opOf(filledOp("lock", facts)))
	ino := tr.apply(made).ok().GetAttr().GetIno()
	tr.fill(here, RootIno, "lock", towerFacts("me")).ok()
	tr.cancel(made).ok()
	require.Equal(t, ino, tr.at(RootIno, "lock"))
}

func TestReleaseByOwner(t *testing.T) {
	tr := newDriver(t)
	token := tr.do(here, opOf(filledOp("lock", ownedFacts("me", 0)))).ok().GetObservations()[0].GetToken()
	for _, owner := range []string{"", "you", "m"} {
		op := unlinkOp("lock")
		op.Owner = owner
		tr.requireRefused(here, opOf(op), storepb.Code_BUSY)
	}
	op := unlinkOp("lock")
	op.Owner, op.Request = "me", "request-1"
	op.Observations = []*storepb.Observation{{Parent: RootIno, Name: []byte("lock"), Token: token - 1}}
	tr.requireRefused(there, opOf(op), storepb.Code_NOT_FOUND)

	before := tr.lastEvent()
	op.Observations[0].Token = token
	tr.do(there, opOf(op)).ok() // on any host
	event := tr.requireEvents(before, "lock_released lock")[0]
	require.Equal(t, "request-1", event.GetRequest())
	require.Contains(t, string(lockjson.EventLine(event)), `"request":"request-1"`)
	tr.requireNone("lock")
}

func TestOwnerIsNoWayAroundOtherGuards(t *testing.T) {
	tr := guarded(t, towerFacts("me"))
	op := unlinkOp("lock")
	op.Owner = "me"
	tr.requireRefused(there, opOf(op), storepb.Code_BUSY)
	op.Request = strings.Repeat("r", maxRequest+1)
	tr.do(here, opOf(op)).is(storepb.Code_INVALID)
}

func TestForceTellsTheRequest(t *testing.T) {
	tr := newDriver(t)
	tr.do(here, opOf(filledOp("lock", ownedFacts("me", 0)))).ok()
	before := tr.lastEvent()
	op := unlinkOp("lock")
	op.Force, op.Request = true, "request-2"
	tr.do(there, opOf(op)).ok()
	require.Equal(t, "request-2", tr.requireEvents(before, "lock_removed lock")[0].GetRequest())
}

func TestExpiredLockOfAnOwnerGoesByItself(t *testing.T) {
	tr := newDriver(t)
	tr.do(here, opOf(filledOp("lock", ownedFacts("me", tr.now+int64(time.Minute))))).ok()
	tr.tick(time.Minute - 2*time.Second)
	tr.requireState("held", "lock")
	tr.tick(3 * time.Second)
	tr.requireNone("lock")
}

// What lockfs keeps for itself is neither listed nor told of, and goes when its time is over.
func TestUnlisted(t *testing.T) {
	tr := newDriver(t)
	before := tr.lastEvent()
	op := filledOp("reply", ownedFacts("request", tr.now+int64(time.Minute)))
	op.Unlisted = true
	ino := tr.do(here, opOf(op)).ok().GetAttr().GetIno()
	tr.do(here, opOf(&storepb.TakeLock{Ino: ino, Type: storepb.LockType_EXCLUSIVE, Session: here})).ok()
	tr.do(there, opOf(&storepb.TakeLock{Ino: ino, Type: storepb.LockType_EXCLUSIVE, Session: there, Wait: true})).is(storepb.Code_WAITING)
	tr.do(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("replies"), Mode: someDir, Unlisted: true})).ok()
	tr.take(here, "lock", nil)
	for range 2 {
		listed := tr.ns.Query(listLocks(0, "", 0)).GetLocks()
		require.Len(t, listed, 1)
		require.Equal(t, "lock", string(listed[0].GetName()))
		all := &storepb.ListAdvisoryLocks{Viewer: root}
		require.Empty(t, queryEngine{&tr.ns.evaluator}.listAdvisories(all).GetAdvisoryLocks())
		require.Len(t, tr.lock("reply").GetAdvisoryLocks(), 2, "who asks for it by name sees it")
		tr.restart()
	}
	tr.tick(2 * time.Minute)
	tr.requireNone("reply")
	tr.requireEvents(before, "lock_acquired lock")
}

func TestNamesAreComparedWithWhatWasSeen(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	seen := []*storepb.Observation{
		{Parent: RootIno, Name: []byte("lock"), Token: tr.token("lock")},
		{Parent: RootIno, Name: []byte("reply")},
	}
	query := &storepb.Query{Query: &storepb.Query_TestChange{TestChange: &storepb.TestChange{Seen: seen}}}
	ask := func() step { return step{tr.ns.Query(query), t} }
	ask().is(storepb.Code_WAITING)
	tr.fill(here, RootIno, "lock", towerFacts("me")).ok()
	ask().is(storepb.Code_WAITING) // it is the same lock
	tr.take(here, "reply", nil)
	ask().ok()
	tr.unlink(here, RootIno, "reply").ok()
	ask().is(storepb.Code_WAITING)
	tr.unlink(here, RootIno, "lock").ok()
	ask().ok()
	tr.take(here, "lock", nil)
	ask().ok()
}

func TestStalenessIsAChangeForThoseWhoAskForIt(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	tr.rule(&storepb.Rule{Pattern: "lock", StaleAfter: int64(time.Minute)}).ok()
	change := &storepb.TestChange{Seen: []*storepb.Observation{{Parent: RootIno, Name: []byte("lock"), Token: tr.token("lock")}}}
	ask := func() step { return step{queryEngine{&tr.ns.evaluator}.testChange(change), t} }
	ask().is(storepb.Code_WAITING)
	change.OrStale = true
	ask().is(storepb.Code_WAITING)
	tr.tick(2 * time.Minute)
	ask().ok()
	change.OrStale = false
	ask().is(storepb.Code_WAITING)
}

func TestEventsOfOnePath(t *testing.T) {
	tr := newDriver(t)
	for _, name := range []string{"a", "b", "a"} {
		tr.take(here, name, nil)
		tr.unlink(here, RootIno, name).ok()
	}
	list := func(after uint64, limit uint32) (numbers []uint64) {
		query := &storepb.ListEvents{Path: []byte("a"), After: after, Limit: limit, Viewer: root}
		for _, e := range (queryEngine{&tr.ns.evaluator}).listEvents(query).GetEvents() {
			require.Equal(t, "a", string(e.GetPath()))
			numbers = append(numbers, e.GetNumber())
		}
		return numbers
	}
	all := list(0, 0)
	require.Len(t, all, 4)
	require.Equal(t, all[2:], list(all[1], 0))
	require.Equal(t, all[:1], list(0, 1))
	require.Empty(t, list(tr.lastEvent(), 0))
}
