package namespace

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestProcessGone(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "kept", keptFacts(processOf(1)))
	tr.take(here, "removed", pidFacts(storepb.Format_BEADS, processOf(1)))
	tr.take(here, "other", pidFacts(storepb.Format_PID, processOf(2)))
	tr.gone(here, nil, processOf(1), new(storepb.Process), processOf(77)).ok()
	tr.requireState("stale", "kept")
	require.Equal(t, "its process 1 on here was ended by signal 9", tr.lock("kept").GetReason())
	require.Equal(t, tr.now, tr.lock("kept").GetSince())
	tr.requireNone("removed")
	tr.requireState("held", "other")
	requireConsistent(t, tr.ns)
	tr.restart()
	tr.requireState("stale", "kept")
}

// TestProcessGoneOnlyFromItsHost and of the boot that the session has.
func TestProcessGoneOnlyFromItsHost(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	later := processOf(1)
	later.BootId = "later"
	elsewhere := processOf(1)
	elsewhere.PidNamespace = 2
	reused := processOf(1)
	reused.Start = 101
	tr.gone(there, processOf(1)).ok()
	tr.gone(here, later, elsewhere, reused).ok()
	tr.gone(0, processOf(1)).is(storepb.Code_SESSION_UNKNOWN)
	tr.gone(9, processOf(1)).is(storepb.Code_SESSION_FORGOTTEN)
	tr.requireState("held", "lock")

	tr.take(there, "of-later", pidFacts(storepb.Format_PID, later))
	tr.gone(there, later).ok()
	tr.requireState("unreachable", "of-later")

	tr.open(3, "here", "boot").ok()
	tr.gone(3, processOf(1)).ok()
	tr.requireNone("lock")
}

// TestProcessGoneForEveryName that is a lock of it, by the rules.
func TestProcessGoneForEveryName(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "kept*", OnStale: "keep"}).ok()
	tr.rule(&storepb.Rule{Pattern: "none*", Format: "tower"}).ok()
	ino := tr.take(here, "removed", pidFacts(storepb.Format_PID, processOf(1)))
	tr.link(ino, RootIno, "kept").ok()
	tr.link(ino, RootIno, "none").ok()
	tr.link(ino, RootIno, "removed too").ok()
	tr.gone(here, processOf(1)).ok()
	require.Equal(t, []string{"kept", "none"}, tr.names())
	tr.requireState("stale", "kept")
	tr.requireState("held", "none")
	require.EqualValues(t, 2, tr.attr(ino).GetNlink())

	tr.link(ino, RootIno, "kept later").ok()
	tr.requireState("stale", "kept later")
	tr.renameNoReplace(RootIno, "none", RootIno, "kept by its name").ok()
	tr.requireState("stale", "kept by its name")
	tr.renameNoReplace(RootIno, "kept", RootIno, "none").ok()
	tr.requireState("held", "none")
	tr.restart()
	tr.deleteRule("none*").ok()
	tr.requireState("stale", "none")
	tr.tick(0)
	require.Equal(t, []string{"kept later", "kept by its name"}, tr.names())
	tr.deleteRule("kept*").ok()
	tr.tick(0)
	require.Empty(t, tr.names())
	requireConsistent(t, tr.ns)
}

func TestProcessGoneOfRenamedLock(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir")
	tr.take(here, "tmp", pidFacts(storepb.Format_BEADS, processOf(1)))
	tr.rename(RootIno, "tmp", dir, "lock").ok()
	tr.rename(RootIno, "dir", RootIno, "moved").ok()
	tr.gone(here, processOf(1)).ok()
	require.Zero(t, tr.at(dir, "lock"))
}

// TestGoneProcessIsToldOnce: its lock stays stale and nobody has to watch it any more.
func TestGoneProcessIsToldOnce(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "kept", keptFacts(processOf(1)))
	tr.gone(here, processOf(1)).ok()
	lock := tr.lock("kept")
	require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses())
	event := tr.lastEvent()
	tr.gone(here, processOf(1)).ok()
	tr.requireEvents(event)
	requireSame(t, lock, tr.lock("kept"))
}

// TestContentThatComesAfterItsProcess has gone: a heartbeat that was under way renews nothing, and of a
// lock that is new the mount tells again.
func TestContentThatComesAfterItsProcess(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "kept", keptFacts(processOf(1)))
	tr.gone(here, processOf(1)).ok()
	tr.fill(here, RootIno, "kept", keptFacts(processOf(1))).ok()
	tr.requireState("stale", "kept")
	tr.restart()
	tr.tick(0)
	tr.requireState("stale", "kept")
	tr.fill(here, RootIno, "kept", keptFacts(processOf(2))).ok()
	tr.requireState("held", "kept")
	tr.gone(here, processOf(2)).ok()
	tr.requireState("stale", "kept")

	tr.take(here, "new", pidFacts(storepb.Format_PID, processOf(1)))
	tr.requireState("held", "new")
	require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), 1)
	tr.gone(here, processOf(1)).ok()
	tr.requireNone("new")
}

// TestRemovedLockHasNoProcess: it is nobody's lock, however long somebody reads it.
func TestRemovedLockHasNoProcess(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	op := tr.fillOp(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(2)))
	tr.unlink(here, RootIno, "lock").ok()
	require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses())
	tr.pin(here, ino).ok()
	tr.do(here, opOf(op)).ok()
	require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses())
	tr.restart()
	event := tr.lastEvent()
	tr.gone(here, processOf(1), processOf(2)).ok()
	tr.requireEvents(event)
	require.Equal(t, "pid p", tr.content(ino))
}

// TestUnidentifiedProcessIsNeverGone, whatever happens to its host.
func TestUnidentifiedProcessIsNeverGone(t *testing.T) {
	tr := newDriver(t)
	facts := pidFacts(storepb.Format_PID, nil)
	facts.Pid = 1
	tr.take(here, "lock", facts)
	tr.rule(&storepb.Rule{Pattern: "**", HostTimeout: 1}).ok()
	tr.gone(here, processOf(1), new(storepb.Process)).ok()
	tr.giveUp(here)
	tr.tick(time.Hour)
	tr.requireState("unreachable", "lock")
	tr.open(3, "here", "later").ok()
	tr.requireState("held", "lock")
	tr.giveUp(3)
	tr.forget("here").ok()
	tr.requireState("unreachable", "lock")
}

func TestAnotherBootEndsProcesses(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.take(here, "tower", towerFacts("x"))
	tr.take(there, "other", pidFacts(storepb.Format_PID, processOf(1)))
	tr.open(3, "here", "boot").ok()
	tr.open(4, "here", "later").is(storepb.Code_BUSY)
	tr.giveUp(here)
	require.Contains(t, tr.open(4, "here", "later").is(storepb.Code_BUSY).GetMessage(), `"here"`)
	tr.requireState("held", "lock")
	tr.do(3, opOf(&storepb.CloseSession{})).ok()
	tr.requireState("unreachable", "lock")
	tr.restart()
	tr.open(4, "here", "later").ok()
	tr.requireNone("lock")
	tr.requireState("held", "tower", "other")
	requireConsistent(t, tr.ns)
}

func TestSameBootEndsNothing(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.giveUp(here)
	tr.requireState("unreachable", "lock")
	tr.open(3, "here", "boot").ok()
	tr.requireState("held", "lock")
	tr.gone(3, processOf(1)).ok()
	tr.requireNone("lock")
}

// TestBootBehindARule: what a rule hides when its host boots is stale all the same once it shows.
func TestBootBehindARule(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", keptFacts(processOf(1)))
	tr.rule(&storepb.Rule{Pattern: "lock", Format: "tower"}).ok()
	tr.giveUp(here)
	tr.open(3, "here", "later").ok()
	tr.requireState("held", "lock")
	tr.deleteRule("lock").ok()
	tr.requireState("stale", "lock")
	require.Equal(t, "its host here has booted since", tr.lock("lock").GetReason())
}

func TestForgetHost(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.take(here, "kept", keptFacts(processOf(2)))
	tr.take(there, "other", pidFacts(storepb.Format_PID, processOf(1)))
	require.Contains(t, tr.forget("nowhere").is(storepb.Code_NOT_FOUND).GetMessage(), `"nowhere"`)
	require.Contains(t, tr.forget("here").is(storepb.Code_BUSY).GetMessage(), `"here"`)
	tr.giveUp(here)
	tr.requireState("unreachable", "lock", "kept")
	tr.forget("here").ok()
	tr.requireNone("lock")
	tr.requireState("stale", "kept")
	require.Equal(t, "its host here was declared gone for good", tr.lock("kept").GetReason())
	tr.requireState("held", "other")
	tr.forget("here").is(storepb.Code_NOT_FOUND)
	tr.restart()

	tr.open(3, "here", "boot").ok()
	tr.requireState("stale", "kept")
	tr.forget("here").is(storepb.Code_BUSY)
}

func TestHostTimeout(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "impatient", HostTimeout: int64(time.Minute)}).ok()
	tr.rule(&storepb.Rule{Pattern: "patient", HostTimeout: math.MaxInt64}).ok()
	tr.take(here, "impatient", pidFacts(storepb.Format_PID, processOf(1)))
	tr.link(tr.at(RootIno, "impatient"), RootIno, "patient").ok()
	tr.link(tr.at(RootIno, "impatient"), RootIno, "endless").ok()
	tr.take(here, "tower", towerFacts("x"))
	tr.tick(time.Hour)
	require.False(t, tr.ns.Due(math.MaxInt64), "the host is there")
	tr.giveUp(here)
	silent := tr.now
	tr.restart()
	tr.tick(time.Minute)
	require.Equal(t, silent+int64(time.Minute), tr.now)
	tr.requireState("unreachable", "impatient")
	require.Equal(t, silent, tr.lock("impatient").GetSince())
	require.False(t, tr.ns.Due(tr.now))
	require.True(t, tr.ns.Due(tr.now+1))
	tr.tick(1)
	tr.requireNone("impatient")
	require.Equal(t, []string{"patient", "endless", "tower"}, tr.names())
	require.False(t, tr.ns.Due(math.MaxInt64))
	tr.requireState("unreachable", "patient", "endless")
	tr.requireState("held", "tower")
	requireConsistent(t, tr.ns)
}

// TestHostTimeoutIsOver when the host is back, and a lock that was kept is held again once it is written.
func TestHostTimeoutIsOver(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "*", HostTimeout: int64(time.Minute)}).ok()
	tr.take(here, "early", keptFacts(processOf(1)))
	tr.giveUp(here)
	tr.tick(50 * time.Second)
	tr.open(3, "here", "boot").ok()
	tr.tick(time.Hour)
	tr.requireState("held", "early")

	tr.do(3, opOf(&storepb.CloseSession{})).ok()
	tr.tick(time.Hour)
	tr.requireState("stale", "early")
	require.Equal(t, `its host here has been silent for more than 1m0s (rule *)`, tr.lock("early").GetReason())
	tr.restart()
	tr.open(4, "here", "boot").ok()
	tr.requireState("stale", "early")
	tr.fill(4, RootIno, "early", keptFacts(processOf(1))).ok()
	tr.requireState("held", "early")
	require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), 1)
}

func TestHosts(t *testing.T) {
	tr := newDriver(t)
	hosts := func() []*storepb.HostRecord {
		return step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListHosts{}}), t}.ok().GetHosts()
	}
	since := tr.now - int64(time.Second)
	requireSame(t, &storepb.HostRecord{Name: "here", BootId: "boot", Sessions: 1, Since: since, Left: true}, hosts()[0])
	tr.open(3, "here", "boot").ok()
	require.EqualValues(t, 2, hosts()[0].GetSessions())
	tr.open(3, "here", "boot").ok()
	require.EqualValues(t, 2, hosts()[0].GetSessions(), "it was taken over")
	event := tr.lastEvent()
	tr.giveUp(3)
	tr.requireEvents(event, "session_ended ")
	tr.do(here, opOf(&storepb.CloseSession{})).ok()
	require.Len(t, hosts(), 1, "it left nothing behind")
	tr.requireEvents(event, "session_ended ")

	tr.take(there, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.do(there, opOf(&storepb.CloseSession{})).ok()
	requireSame(t, &storepb.HostRecord{Name: "there", BootId: "boot", Since: tr.now, Left: true}, hosts()[0])
	tr.requireState("unreachable", "lock")
	require.Equal(t, "host there has no mount, so its processes cannot be seen", tr.lock("lock").GetReason())
	requireConsistent(t, tr.ns)
}

// TestHostsAreLimited: one without sessions and locks makes room for a new one, the one silent for longest.
func TestHostsAreLimited(t *testing.T) {
	tr := newDriver(t)
	tr.do(0, opOf(&storepb.SetLimits{MaxSessions: 3 * maxHosts})).ok()
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.giveUp(here)
	for i := range maxHosts + 5 {
		session := uint64(100 + i)
		tr.open(session, nameOf(i), "boot").ok()
		tr.giveUp(session)
	}
	require.LessOrEqual(t, tr.ns.hosts.byName.Len(), maxHosts+2)
	_, known := tr.ns.hosts.byName.Get("here")
	require.True(t, known, "its lock is waited for")
	_, known = tr.ns.hosts.byName.Get(nameOf(0))
	require.False(t, known)
	_, known = tr.ns.hosts.byName.Get(nameOf(maxHosts + 4))
	require.True(t, known)
	requireConsistent(t, tr.ns)
}

// TestNothingIsDueAtTheEndOfTime, as where a lock may be as old as can be.
func TestNothingIsDueAtTheEndOfTime(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "*", StaleAfter: math.MaxInt64}).ok()
	tr.take(here, "lock", factsFor(storepb.Format_SEMAPHORE, "1", math.MaxInt64))
	tr.tick(time.Hour)
	require.EqualValues(t, int64(math.MaxInt64), tr.ns.NextDue())
}
