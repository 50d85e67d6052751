package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// notCrashes are the ends of a process that leave its pid lock in place.
func notCrashes() map[string]*storepb.ProcessEnd {
	return map[string]*storepb.ProcessEnd{
		"success":         {Kind: storepb.EndKind_END_EXIT},
		"failure":         {Kind: storepb.EndKind_END_EXIT, Number: 143},
		"of unknown kind": {},
		"not told":        nil,
	}
}

// TestAnExitLeavesThePIDLockOfItsProcess stale and in place, whatever the status: it may be a marker.
func TestAnExitLeavesThePIDLockOfItsProcess(t *testing.T) {
	for name, how := range notCrashes() {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "migrated", pidFacts(storepb.Format_PID, processOf(1)))
			tr.take(here, "database", pidFacts(storepb.Format_BEADS, processOf(1)))
			tr.endedBy(here, how, processOf(1)).ok()
			tr.requireState("stale", "migrated")
			tr.requireNone("database")
			tr.do(there, createOp(RootIno, "migrated", true)).is(storepb.Code_EXISTS)
			tr.restart()
			tr.tick(time.Hour)
			tr.requireState("stale", "migrated")
			tr.unlink(there, RootIno, "migrated").ok()
			requireConsistent(t, tr.ns)
		})
	}
}

func TestAReasonSaysHowTheProcessEnded(t *testing.T) {
	for reason, how := range map[string]*storepb.ProcessEnd{
		"its process 1 on here is gone":               nil,
		"its process 1 on here exited with status 3":  {Kind: storepb.EndKind_END_EXIT, Number: 3},
		"its process 1 on here was ended by signal 9": {Kind: storepb.EndKind_END_SIGNAL, Number: 9},
	} {
		tr := newDriver(t)
		tr.take(here, "kept", keptFacts(processOf(1)))
		tr.endedBy(here, how, processOf(1)).ok()
		require.Equal(t, reason, tr.lock("kept").GetReason())
	}
}

// TestTheFirstEndOfAProcessCounts, also after a restart: a reboot or a word of another mount does not turn an exit into a crash.
func TestTheFirstEndOfAProcessCounts(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	exit := &storepb.ProcessEnd{Kind: storepb.EndKind_END_EXIT}
	tr.endedBy(here, exit, processOf(1)).ok()
	tr.gone(here, processOf(1)).ok()
	tr.restart()
	tr.gone(here, processOf(1)).ok()
	tr.giveUp(here)
	tr.open(3, "here", "later").ok()
	tr.requireState("stale", "lock")
	require.Equal(t, "its process 1 on here exited with status 0", tr.lock("lock").GetReason())
	tr.fill(3, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok() // a write that was under way
	tr.tick(0)
	tr.requireState("stale", "lock")

	op := &storepb.ProcessGone{Processes: []*storepb.Process{processOf(2), processOf(2)}, Ends: []*storepb.ProcessEnd{
		exit, {Kind: storepb.EndKind_END_SIGNAL, Number: 9},
	}}
	tr.take(there, "twice", pidFacts(storepb.Format_PID, processOf(2)))
	tr.do(there, opOf(op)).ok()
	tr.requireState("stale", "twice")
}

// TestARuleRemovesAlsoAfterAnExit: --on-stale remove and --holder creator mean every end.
func TestARuleRemovesAlsoAfterAnExit(t *testing.T) {
	for name, rule := range map[string]*storepb.Rule{
		"on-stale remove": {Pattern: "*", OnStale: "remove"},
		"holder creator":  {Pattern: "*", Holder: "creator"},
	} {
		for kind, how := range notCrashes() {
			t.Run(name+", "+kind, func(t *testing.T) {
				tr := newDriver(t)
				tr.rule(rule).ok()
				tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok()
				tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
				tr.endedBy(here, how, processOf(1)).ok()
				tr.requireNone("lock")
			})
		}
	}
}

// TestARuleThatComesLaterRemovesWhatAnExitLeft: an administrator cleans up.
func TestARuleThatComesLaterRemovesWhatAnExitLeft(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	tr.endedBy(here, nil, processOf(1)).ok()
	tr.tick(time.Hour)
	tr.requireState("stale", "lock")
	tr.rule(&storepb.Rule{Pattern: "lock", OnStale: "remove"}).ok()
	tr.tick(0)
	tr.requireNone("lock")
}

// TestAnExitKeepsALockThatIsAboutToBeRemoved: the lock was stale already, because its host was silent. A restored state keeps the same locks.
func TestAnExitKeepsALockThatIsAboutToBeRemoved(t *testing.T) {
	const locks, kept = expiryBatch + 5, 5
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "*", HostTimeout: 1}).ok()
	var processes []*storepb.Process
	for i := range locks {
		processes = append(processes, processOf(uint32(i+1)))
		ino := tr.take(there, nameOf(i), pidFacts(storepb.Format_PID, processes[i]))
		tr.lockAs(here, 7, false, &storepb.TakeLock{Ino: ino, Owner: 1}).ok() // delays a removal
	}
	tr.giveUp(there)
	tr.tick(time.Hour)
	tr.tick(time.Hour)
	for i := range locks {
		tr.requireState("stale", nameOf(i))
	}
	tr.open(3, "there", "boot").ok()
	tr.do(here, opOf(&storepb.CloseSession{})).ok()
	tr.endedBy(3, &storepb.ProcessEnd{Kind: storepb.EndKind_END_EXIT}, processes...).ok() // at this time a batch goes
	requireConsistent(t, tr.ns)
	require.Len(t, tr.names(), kept)
	tr.restart()
	tr.tick(time.Hour)
	require.Len(t, tr.names(), kept)
	requireConsistent(t, tr.ns)
}
