package namespace

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// recipes are how programs come by the lock "lock" on the host here, all within a second.
var recipes = map[string]func(tr *driver){
	"noclobber, then written": func(tr *driver) {
		tr.soon().do(here, createOp(RootIno, "lock", true)).ok()
		tr.soon().fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
	},
	"created, truncated, written": func(tr *driver) {
		tr.soon().do(here, createOp(RootIno, "lock", true)).ok()
		tr.soon().fill(here, RootIno, "lock", nil).ok()
		tr.soon().fill(here, RootIno, "lock", towerFacts("x")).ok()
	},
	"created, and nothing else": func(tr *driver) { tr.soon().do(here, createOp(RootIno, "lock", true)).ok() },
	"created with its content": func(tr *driver) {
		facts := towerFacts("x")
		facts.Host = "here"
		tr.soon().do(here, opOf(filledOp("lock", facts))).ok()
	},
	"opened, then written": func(tr *driver) {
		tr.soon().do(here, createOp(RootIno, "lock", false)).ok()
		tr.soon().fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
	},
	"evidence": func(tr *driver) {
		ino := tr.soon().do(here, createOp(RootIno, "lock", true)).ok().GetAttr().GetIno()
		tr.soon().do(here, opOf(&storepb.SetContent{
			Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("here"), Facts: &storepb.Facts{Evidence: []string{"names its host"}},
		})).ok()
	},
	"write-temp-and-link": func(tr *driver) {
		ino := tr.soon().do(here, createOp(RootIno, "tmp", true)).ok().GetAttr().GetIno()
		tr.soon().fill(here, RootIno, "tmp", pidFacts(storepb.Format_PID, processOf(1))).ok()
		tr.soon().link(ino, RootIno, "lock").ok()
		tr.soon().unlink(here, RootIno, "tmp").ok()
	},
	"write-temp-and-rename": func(tr *driver) {
		tr.soon().do(here, createOp(RootIno, "tmp", true)).ok()
		tr.soon().fill(here, RootIno, "tmp", towerFacts("x")).ok()
		tr.soon().rename(RootIno, "tmp", RootIno, "lock").ok()
	},
	"write-temp-and-rename, NOREPLACE": func(tr *driver) {
		tr.soon().do(here, createOp(RootIno, "tmp", false)).ok()
		tr.soon().fill(here, RootIno, "tmp", towerFacts("x")).ok()
		tr.soon().renameNoReplace(RootIno, "tmp", RootIno, "lock").ok()
	},
	"mkdir": func(tr *driver) { tr.soon().mkdir(RootIno, "lock") },
	"symlink": func(tr *driver) {
		tr.soon().do(here, opOf(&storepb.Create{
			Parent: RootIno, Name: []byte("lock"), Mode: syscall.S_IFLNK | 0o777, Target: []byte("here:1"),
			Facts: &storepb.Facts{Evidence: []string{"names its host"}},
		})).ok()
	},
}

// TestOneAcquisitionIsOneEvent by any of the usual recipes, and a second later at most.
func TestOneAcquisitionIsOneEvent(t *testing.T) {
	for name, take := range recipes {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			take(tr)
			tr.announceAll()
			event := tr.requireEvents(0, "lock_acquired lock")[0]
			require.Equal(t, tr.lock("lock").GetAcquired(), event.GetAcquired())
			require.LessOrEqual(t, event.GetTime()-event.GetAcquired(), int64(eventDelay)+int64(10*time.Millisecond))
			require.Equal(t, tr.token("lock"), event.GetToken())
			require.Equal(t, tr.lock("lock").GetFacts().GetHolder(), event.GetHolder())
			tr.restart()
			tr.tick(time.Hour)
			tr.requireEvents(event.GetNumber())
		})
	}
}

// TestDirectoryAndWhatIsInItAreOneAcquisition.
func TestDirectoryAndWhatIsInItAreOneAcquisition(t *testing.T) {
	for name, facts := range map[string]*storepb.Facts{"pid": pidFacts(storepb.Format_PID, processOf(1)), "none": nil} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			dir := tr.soon().mkdir(RootIno, "lock")
			tr.soon().do(here, createOp(dir, "owner", true)).ok()
			if facts != nil {
				tr.soon().fill(here, dir, "owner", facts).ok()
			}
			tr.restart()
			tr.announceAll()
			event := tr.requireEvents(0, "lock_acquired lock/owner")[0]
			require.Equal(t, facts.GetHolder(), event.GetHolder())
		})
	}
}

// TestAcquisitionIsToldBeforeAnythingElse that happens to the lock within the second.
func TestAcquisitionIsToldBeforeAnythingElse(t *testing.T) {
	unlink := func(tr *driver, session uint64, change func(*storepb.Unlink)) step {
		op := unlinkOp("lock")
		op.Directory = tr.attr(tr.at(RootIno, "lock")).GetMode()&syscall.S_IFMT == syscall.S_IFDIR
		change(op)
		return tr.soon().do(session, opOf(op))
	}
	for end, test := range map[string]func(tr *driver) []string{
		"released": func(tr *driver) []string {
			unlink(tr, here, func(*storepb.Unlink) {}).ok()
			return []string{"lock_released lock"}
		},
		"removed by force": func(tr *driver) []string {
			unlink(tr, there, func(op *storepb.Unlink) { op.Force = true }).ok()
			return []string{"lock_removed lock"}
		},
		"refused": func(tr *driver) []string {
			unlink(tr, there, func(op *storepb.Unlink) {
				op.Observations = []*storepb.Observation{{Parent: RootIno, Name: []byte("lock"), Token: 1}}
			}).is(storepb.Code_NOT_FOUND)
			return []string{"removal_refused lock"}
		},
	} {
		for name, take := range recipes {
			t.Run(name+", "+end, func(t *testing.T) {
				tr := newDriver(t)
				take(tr)
				tr.requireEvents(0, append([]string{"lock_acquired lock"}, test(tr)...)...)
				tr.tick(time.Hour)
				require.EqualValues(t, 2, tr.lastEvent())
				requireConsistent(t, tr.ns)
			})
		}
	}
	tr := newDriver(t)
	tr.soon().do(here, createOp(RootIno, "lock", true)).ok()
	tr.soon().fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.soon().gone(here, processOf(1)).ok()
	tr.requireEvents(0, "lock_acquired lock", "lock_stale lock", "lock_removed lock")

	tr = newDriver(t)
	tr.soon().do(here, createOp(RootIno, "lock", true)).ok()
	tr.soon().fill(here, RootIno, "lock", factsFor(storepb.Format_SWARM, "x", 0)).ok()
	tr.soon().fill(there, RootIno, "lock", factsFor(storepb.Format_SWARM, "y", 0)).ok()
	tr.requireEvents(0, "lock_acquired lock", "lock_stolen lock", "lock_acquired lock")
}

// TestWhatTurnsOutToBeDataIsNotTold of.
func TestWhatTurnsOutToBeDataIsNotTold(t *testing.T) {
	tr := newDriver(t)
	ino := tr.soon().do(here, dataNamed(createOp(RootIno, "download", true))).ok().GetAttr().GetIno()
	tr.soon().write(here, ino, "data").ok()
	dir := tr.soon().do(here, dataNamed(opOf(&storepb.Create{Parent: RootIno, Name: []byte("dir"), Mode: someDir}))).ok().GetAttr().GetIno()
	tr.soon().do(here, createOp(dir, "file", false)).ok()
	tr.tick(time.Minute)
	tr.unlink(here, RootIno, "download").ok()
	tr.requireEvents(0)
}

// TestTickTellsOfAcquisitions when their time has come, without any other command.
func TestTickTellsOfAcquisitions(t *testing.T) {
	tr := newDriver(t)
	for i := range expiryBatch + 1 {
		tr.soon().do(here, createOp(RootIno, nameOf(i), true)).ok()
	}
	told := tr.ns.events.last
	until := tr.now + int64(eventDelay)
	require.True(t, tr.ns.Due(until))
	for tr.ns.Due(until) {
		tr.ns.Apply(tr.ns.index+1, &storepb.Command{Op: opOf(&storepb.Tick{}), Time: until})
	}
	require.EqualValues(t, expiryBatch+1, tr.lastEvent())
	require.Less(t, told, tr.lastEvent())
	require.Zero(t, tr.ns.tree.byPending.Len())
}

// TestWrittenAfterItWasLinked: that the temporary file is the same lock, an event has told already.
func TestWrittenAfterItWasLinked(t *testing.T) {
	tr := newDriver(t)
	ino := tr.soon().do(here, createOp(RootIno, "tmp", true)).ok().GetAttr().GetIno()
	tr.soon().link(ino, RootIno, "lock").ok()
	tr.soon().fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.announceAll()
	tr.requireEvents(0, "lock_acquired lock")
	tr.unlink(here, RootIno, "lock").ok()
	tr.fill(here, RootIno, "tmp", pidFacts(storepb.Format_PID, processOf(2))).ok()
	tr.announceAll()
	tr.requireEvents(1, "lock_released lock", "lock_acquired tmp")
}
