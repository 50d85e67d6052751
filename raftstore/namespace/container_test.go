package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// in does an operation for a process in a pid namespace.
func (tr *driver) in(session, namespace uint64, op *storepb.Op) step {
	cmd := tr.next(session, op)
	cmd.Caller.PidNamespace = namespace
	return tr.apply(cmd)
}

// Pid namespaces: that of the host, of a container in it, of one in that, and of another one.
const (
	hostNS = 10 + iota
	outerNS
	innerNS
	otherNS
)

// inContainer is a process of the outer container, which the host can see into.
func inContainer() *storepb.Process {
	p := processOf(1)
	p.SeenFrom = []uint64{outerNS, hostNS}
	return p
}

// TestLockIsRefusedWhereItsProcessCannotBeSeen: a pid says nothing there. Where it can, it is not.
func TestLockIsRefusedWhereItsProcessCannotBeSeen(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			for _, blind := range []uint64{innerNS, otherNS, 0} {
				tr := guarded(t, pidFacts(storepb.Format_PID, inContainer()))
				if blind == innerNS {
					tr.restart()
				}
				tr.in(here, blind, way.op(tr, here)).is(storepb.Code_BUSY)
				require.NotZero(t, tr.at(RootIno, "lock"))
				require.Contains(t, tr.lock("lock").GetRemover(), "that can see its process")
				tr.gone(here, inContainer()).ok()
				tr.requireNone("lock")
			}
			for _, sees := range []uint64{hostNS, outerNS} {
				tr := guarded(t, pidFacts(storepb.Format_PID, inContainer()))
				tr.in(here, sees, way.op(tr, here)).ok()
			}
			tr := guarded(t, pidFacts(storepb.Format_PID, processOf(1))) // nobody knows which those are
			tr.in(here, otherNS, way.op(tr, here)).ok()
		})
	}
}

// TestStaleLockIsTakenFromAnyContainer, in place too: between the truncation and the write nobody is held to who is gone.
func TestStaleLockIsTakenFromAnyContainer(t *testing.T) {
	kept := keptFacts(inContainer())
	for _, session := range []uint64{here, there} {
		tr := guarded(t, kept)
		tr.gone(here, inContainer()).ok()
		tr.in(session, otherNS, opOf(tr.fillOp(session, RootIno, "lock", nil))).ok()
		tr.restart()
		tr.in(session, otherNS, opOf(tr.fillOp(session, RootIno, "lock", keptFacts(processOf(2))))).ok()
		tr.requireState("held", "lock")
		require.Equal(t, tr.index, tr.token("lock"))
	}
}

// TestTruncatedLockIsStillThatOfItsContainer: its holder is about to write to it.
func TestTruncatedLockIsStillThatOfItsContainer(t *testing.T) {
	tr := guarded(t, pidFacts(storepb.Format_PID, inContainer()))
	tr.in(here, outerNS, opOf(tr.fillOp(here, RootIno, "lock", nil))).ok()
	tr.in(here, otherNS, opOf(unlinkOp("lock"))).is(storepb.Code_BUSY)
	tr.in(here, outerNS, opOf(tr.fillOp(here, RootIno, "lock", pidFacts(storepb.Format_PID, inContainer())))).ok()
}

// onMachine opens a session of a host on a machine.
func (tr *driver) onMachine(session uint64, host, boot, machine string) step {
	tr.hosts[session] = host
	return tr.apply(&storepb.Command{Session: session, Op: opOf(&storepb.OpenSession{Host: host, BootId: boot, Machine: machine})})
}

// twoMachines has a lock on the first machine named "debian", which is cut off, and a mount on the second.
func twoMachines(t *testing.T, facts *storepb.Facts) *driver {
	tr := newDriver(t)
	tr.onMachine(7, "debian", "boot", "first").ok()
	tr.take(7, "lock", facts)
	tr.take(7, "tmp", nil)
	tr.onMachine(8, "debian", "second boot", "second").is(storepb.Code_BUSY)
	tr.giveUp(7)
	tr.onMachine(8, "debian", "second boot", "second").ok()
	return tr
}

// TestAnotherMachineOfTheNameProvesNothing: its boot is not one of the first.
func TestAnotherMachineOfTheNameProvesNothing(t *testing.T) {
	for _, format := range []storepb.Format{storepb.Format_PID, storepb.Format_BEADS} {
		tr := twoMachines(t, pidFacts(format, processOf(1)))
		tr.tick(time.Hour)
		tr.requireState("unreachable", "lock")
		tr.restart()
		tr.gone(8, processOf(1)).ok() // of another boot than the session's
		tr.requireState("unreachable", "lock")

		tr.do(8, opOf(&storepb.CloseSession{})).ok()
		tr.onMachine(9, "debian", "boot", "first").ok()
		tr.requireState("held", "lock")
		tr.do(9, opOf(&storepb.CloseSession{})).ok()
		tr.onMachine(10, "debian", "third boot", "first").ok()
		tr.requireNone("lock")
	}
}

// TestAnotherMachineOfTheNamePassesNoGuard.
func TestAnotherMachineOfTheNamePassesNoGuard(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			for _, facts := range []*storepb.Facts{pidFacts(storepb.Format_PID, processOf(1)), towerFacts("x")} {
				tr := twoMachines(t, facts)
				tr.wait(time.Minute)
				tr.requireRefused(8, way.op(tr, 8), storepb.Code_BUSY)
			}
		})
	}
}

// TestMountsOfOneBootAreOfOneMachine, also if each of them has made up an id for it.
func TestMountsOfOneBootAreOfOneMachine(t *testing.T) {
	for _, facts := range []*storepb.Facts{pidFacts(storepb.Format_PID, processOf(1)), towerFacts("x")} {
		tr := newDriver(t)
		tr.onMachine(7, "debian", "boot", "kept by root").ok()
		tr.onMachine(8, "debian", "boot", "kept by a user").ok()
		tr.take(8, "lock", facts)
		tr.do(8, opOf(unlinkOp("lock"))).ok()
		tr.take(8, "lock", facts)
		tr.do(7, opOf(&storepb.CloseSession{})).ok()
		tr.giveUp(8)
		tr.onMachine(9, "debian", "boot", "kept by a user").ok()
		tr.requireState("held", "lock")
		tr.do(9, opOf(unlinkOp("lock"))).ok()
	}
}

// TestMakerOnAnotherMachineOfTheName is neither gone nor passed.
func TestMakerOnAnotherMachineOfTheName(t *testing.T) {
	tr := byCreator(t, "remove")
	tr.onMachine(7, "debian", "boot", "first").ok()
	tr.as(7, 1, createOp(RootIno, "lock", true), processOf(1)).ok()
	tr.giveUp(7)
	tr.onMachine(8, "debian", "second boot", "second").ok()
	tr.tick(time.Minute)
	tr.requireState("unreachable", "lock")
	tr.requireRefused(8, opOf(unlinkOp("lock")), storepb.Code_BUSY)
	tr.do(8, opOf(&storepb.CloseSession{})).ok()
	tr.onMachine(9, "debian", "third boot", "first").ok()
	tr.requireNone("lock")
}

// TestMachineThatSaysTwoIDs: one without an id of its own has one for each directory of session files. Its boot is one.
func TestMachineThatSaysTwoIDs(t *testing.T) {
	for _, first := range []string{"", "first"} {
		tr := newDriver(t)
		tr.onMachine(7, "debian", "boot", first).ok()
		tr.onMachine(8, "debian", "boot", "second").ok()
		for _, session := range []uint64{7, 8} {
			tr.take(8, "lock", pidFacts(storepb.Format_PID, processOf(1)))
			tr.do(session, opOf(unlinkOp("lock"))).ok()
		}
		tr.take(8, "lock", pidFacts(storepb.Format_PID, processOf(1)))
		tr.giveUp(7)
		tr.giveUp(8)
		tr.onMachine(9, "debian", "boot", "second").ok()
		tr.requireState("held", "lock")
		tr.giveUp(9)
		tr.onMachine(10, "debian", "later", first).ok()
		tr.requireNone("lock")
	}
}

// TestPatienceWithAMachineWhoseNameIsAnothers ends too: nobody sees the processes of the first.
func TestPatienceWithAMachineWhoseNameIsAnothers(t *testing.T) {
	for _, facts := range []*storepb.Facts{pidFacts(storepb.Format_PID, processOf(1)), towerFacts("x")} {
		tr := twoMachines(t, facts)
		tr.take(8, "other", pidFacts(storepb.Format_PID, &storepb.Process{PidNamespace: 1, Pid: 1, Start: 1, BootId: "second boot"}))
		tr.rule(&storepb.Rule{Pattern: "*", HostTimeout: int64(time.Hour)}).ok()
		tr.tick(time.Minute)
		require.NotZero(t, tr.at(RootIno, "lock"))
		tr.tick(time.Hour)
		require.Equal(t, facts.GetFormat() != storepb.Format_PID, tr.at(RootIno, "lock") != 0)
		tr.requireState("held", "other")
	}
}

// inNamespace opens a session of the host whose mount is in a pid namespace.
func (tr *driver) inNamespace(session uint64, host string, namespace uint64) step {
	tr.hosts[session] = host
	return tr.apply(&storepb.Command{Session: session, Op: opOf(&storepb.OpenSession{Host: host, BootId: "boot", PidNamespace: namespace})})
}

// TestContainerThatWasStartedAnewWithItsMount: nobody sees the processes of the old one, and nobody is kept from removing what they
// left but other hosts.
func TestContainerThatWasStartedAnewWithItsMount(t *testing.T) {
	old := &storepb.Process{PidNamespace: outerNS, Pid: 5, Start: 1, BootId: "boot", SeenFrom: []uint64{outerNS}}
	for _, made := range []bool{false, true} {
		tr := newDriver(t)
		tr.inNamespace(7, "pod", outerNS).ok()
		if made {
			tr.rule(&storepb.Rule{Pattern: "*", Holder: "creator"}).ok()
			tr.as(7, 1, createOp(RootIno, "lock", true), old).ok()
		} else {
			tr.take(7, "lock", pidFacts(storepb.Format_PID, old))
		}
		tr.inNamespace(8, "pod", innerNS).ok()
		tr.in(8, innerNS, opOf(unlinkOp("lock"))).is(storepb.Code_BUSY)
		tr.requireState("held", "lock")

		tr.giveUp(7)
		tr.requireState("unreachable", "lock")
		require.Equal(t, "no mount of host pod sees its process", tr.lock("lock").GetReason())
		tr.restart()
		tr.in(there, hostNS, opOf(unlinkOp("lock"))).is(storepb.Code_BUSY)
		tr.in(8, innerNS, opOf(unlinkOp("lock"))).ok()
	}
}

// TestPatienceWithAContainerThatWasStartedAnew ends, too.
func TestPatienceWithAContainerThatWasStartedAnew(t *testing.T) {
	tr := newDriver(t)
	tr.inNamespace(7, "pod", outerNS).ok()
	tr.take(7, "lock", pidFacts(storepb.Format_PID, &storepb.Process{PidNamespace: outerNS, Pid: 5, Start: 1, BootId: "boot"}))
	tr.rule(&storepb.Rule{Pattern: "*", HostTimeout: int64(time.Minute)}).ok()
	tr.inNamespace(8, "pod", innerNS).ok()
	tr.tick(time.Hour)
	tr.requireState("held", "lock")
	tr.giveUp(7)
	tr.tick(time.Hour)
	tr.requireNone("lock")
}
