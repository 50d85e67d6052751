package namespace

import (
	"testing"
	"time"

	"lockfs/raftstore/storepb"
)

// TestAnotherBootIsProofOnlyAfterSilence has a machine end its session, with a process that goes on holding a lock, and another boot of it
// come: it may be a clone.
func TestAnotherBootIsProofOnlyAfterSilence(t *testing.T) {
	const silence = 15 * time.Second
	come := func(tr *driver, machine string) step {
		return tr.apply(&storepb.Command{Session: 7, Op: opOf(&storepb.OpenSession{
			Host: "here", BootId: "later", Machine: machine, Silence: int64(silence),
		})})
	}
	held := func(t *testing.T) *driver {
		tr := newDriver(t)
		tr.take(here, "lock", pidFacts(storepb.Format_BEADS, processOf(1)))
		return tr
	}
	t.Run("the session was ended by its mount", func(t *testing.T) {
		tr := held(t)
		tr.do(here, opOf(&storepb.CloseSession{})).ok()
		come(tr, "").is(storepb.Code_BUSY)
		tr.requireState("unreachable", "lock")
		tr.wait(silence - 4*time.Second) // each command takes one
		come(tr, "").is(storepb.Code_BUSY)
		tr.restart()
		tr.requireState("unreachable", "lock")
		tr.wait(2 * time.Second)
		come(tr, "").ok()
		tr.requireNone("lock")
	})
	t.Run("the same boot comes back", func(t *testing.T) {
		tr := held(t)
		tr.do(here, opOf(&storepb.CloseSession{})).ok()
		come(tr, "").is(storepb.Code_BUSY)
		tr.open(8, "here", "boot").ok()
		tr.requireState("held", "lock")
		tr.wait(time.Hour)
		come(tr, "").is(storepb.Code_BUSY)
		tr.requireState("held", "lock")
	})
	t.Run("the session was not renewed", func(t *testing.T) {
		tr := held(t)
		tr.giveUp(here)
		come(tr, "").ok()
		tr.requireNone("lock")
	})
	t.Run("another machine", func(t *testing.T) {
		tr := held(t)
		tr.do(here, opOf(&storepb.CloseSession{})).ok()
		come(tr, "another").ok()
		tr.requireState("unreachable", "lock")
	})
	t.Run("no lock is left", func(t *testing.T) {
		tr := newDriver(t)
		tr.do(here, opOf(&storepb.CloseSession{})).ok()
		come(tr, "").ok()
	})
}
