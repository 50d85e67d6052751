package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestTokenIsNewForAFreeName(t *testing.T) {
	for name, take := range map[string]func(tr *driver) step{
		"create":     func(tr *driver) step { return tr.do(here, createOp(RootIno, "lock", true)) },
		"open":       func(tr *driver) step { return tr.do(here, createOp(RootIno, "lock", false)) },
		"mkdir":      func(tr *driver) step { return tr.create(RootIno, "lock", someDir) },
		"link":       func(tr *driver) step { return tr.link(tr.at(RootIno, "other"), RootIno, "lock") },
		"rename":     func(tr *driver) step { return tr.rename(RootIno, "other", RootIno, "lock") },
		"noreplace":  func(tr *driver) step { return tr.renameNoReplace(RootIno, "other", RootIno, "lock") },
		"moved here": func(tr *driver) step { return tr.rename(tr.at(RootIno, "dir"), "inside", RootIno, "lock") },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "other", towerFacts("x"))
			tr.file(tr.mkdir(RootIno, "dir"), "inside")
			for range 2 {
				result := take(tr).ok()
				require.Equal(t, tr.index, tr.token("lock"))
				require.Equal(t, tr.now, tr.lock("lock").GetAcquired())
				requireSame(t, &storepb.Observation{
					Parent: RootIno, Name: []byte("lock"), Token: tr.index, Data: name == "open" || name == "moved here",
				}, result.GetObservations()[0])
				tr.do(here, opOf(&storepb.Unlink{
					Parent: RootIno, Name: []byte("lock"), Directory: tr.attr(tr.at(RootIno, "lock")).GetMode()&someDir == someDir,
				})).ok()
				if tr.at(RootIno, "other") == 0 {
					tr.take(here, "other", towerFacts("x"))
				}
				if dir := tr.at(RootIno, "dir"); tr.at(dir, "inside") == 0 {
					tr.file(dir, "inside")
				}
			}
		})
	}
}

// TestTokenStaysWithItsHolder: a lock of holder x is renewed or loses its content, whatever the way.
func TestTokenStaysWithItsHolder(t *testing.T) {
	x := towerFacts("x")
	for name, renew := range map[string]func(tr *driver){
		"heartbeat in place":             func(tr *driver) { tr.fill(here, RootIno, "lock", x).ok() },
		"heartbeat by rename":            func(tr *driver) { tr.replace(here, "lock", x).ok() },
		"truncated":                      func(tr *driver) { tr.fill(here, RootIno, "lock", nil).ok() },
		"replaced by what tells nothing": func(tr *driver) { tr.replace(here, "lock", nil).ok() },
		"truncated, then written": func(tr *driver) {
			tr.fill(here, RootIno, "lock", nil).ok()
			tr.fill(here, RootIno, "lock", x).ok()
		},
		"replaced by an empty file, then written": func(tr *driver) {
			tr.replace(here, "lock", nil).ok()
			tr.fill(here, RootIno, "lock", x).ok()
		},
		"truncated, then replaced": func(tr *driver) {
			tr.fill(here, RootIno, "lock", nil).ok()
			tr.replace(here, "lock", x).ok()
		},
		"exchanged with what tells nothing": func(tr *driver) {
			tr.take(here, "tmp", nil)
			tr.exchange(RootIno, "tmp", RootIno, "lock").ok()
		},
		"exchanged with a copy": func(tr *driver) {
			tr.take(here, "tmp", x)
			tr.exchange(RootIno, "tmp", RootIno, "lock").ok()
		},
		"another name is made of it": func(tr *driver) { tr.link(tr.at(RootIno, "lock"), RootIno, "more").ok() },
		"attributes change": func(tr *driver) {
			tr.do(here, opOf(&storepb.SetAttr{Ino: tr.at(RootIno, "lock"), MtimeNow: true})).ok()
		},
		"renamed to another of its names": func(tr *driver) {
			tr.link(tr.at(RootIno, "lock"), RootIno, "more").ok()
			tr.rename(RootIno, "lock", RootIno, "more").ok()
		},
		"the state is restored": func(tr *driver) { tr.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "lock", x)
			before := tr.lock("lock")
			for range 2 {
				renew(tr)
				tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("more")}))
				tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("tmp")}))
				require.Equal(t, before.GetToken(), tr.token("lock"))
				require.Equal(t, before.GetAcquired(), tr.lock("lock").GetAcquired())
			}
			requireConsistent(t, tr.ns)
		})
	}
}

// TestTokenStaysWhenTheHolderBecomesKnown: the name was taken by who then writes.
func TestTokenStaysWhenTheHolderBecomesKnown(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	before := tr.lock("lock")
	tr.fill(here, RootIno, "lock", towerFacts("x")).ok()
	require.Equal(t, before.GetToken(), tr.token("lock"))
	require.Equal(t, before.GetAcquired(), tr.lock("lock").GetAcquired())
}

func TestTokenIsNewForAnotherHolder(t *testing.T) {
	x := towerFacts("x")
	p := pidFacts(storepb.Format_PID, processOf(1))
	process := func(change func(*storepb.Process)) *storepb.Facts {
		other := processOf(1)
		change(other)
		return pidFacts(storepb.Format_PID, other)
	}
	for name, row := range map[string]struct{ first, second *storepb.Facts }{
		"another name":          {x, towerFacts("y")},
		"another format":        {x, factsFor(storepb.Format_FORRST, "x", 0)},
		"another pid":           {p, pidFacts(storepb.Format_PID, processOf(2))},
		"a process before it":   {p, process(func(p *storepb.Process) { p.Start = 99 })},
		"another pid namespace": {p, process(func(p *storepb.Process) { p.PidNamespace = 2 })},
		"another boot":          {p, process(func(p *storepb.Process) { p.BootId = "later" })},
	} {
		for way, change := range map[string]func(tr *driver){
			"in place":  func(tr *driver) { tr.fill(here, RootIno, "lock", row.second).ok() },
			"by rename": func(tr *driver) { tr.replace(here, "lock", row.second).ok() },
			"by exchange": func(tr *driver) {
				tr.take(here, "tmp", row.second)
				tr.exchange(RootIno, "lock", RootIno, "tmp").ok()
				require.Equal(tr.tb, tr.index, tr.token("tmp"), "the other side has another holder too")
			},
			"truncated before": func(tr *driver) {
				tr.fill(here, RootIno, "lock", nil).ok()
				tr.fill(here, RootIno, "lock", row.second).ok()
			},
			"an empty file between": func(tr *driver) {
				tr.replace(here, "lock", nil).ok()
				tr.fill(here, RootIno, "lock", row.second).ok()
			},
			"truncated, restored, replaced": func(tr *driver) {
				tr.fill(here, RootIno, "lock", nil).ok()
				tr.restart()
				tr.replace(here, "lock", row.second).ok()
			},
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				tr := newDriver(t)
				tr.take(here, "lock", row.first)
				change(tr)
				require.Equal(t, tr.index, tr.token("lock"))
				require.Equal(t, tr.now, tr.lock("lock").GetAcquired())
				requireConsistent(t, tr.ns)
			})
		}
	}
}

// TestProcessOfAnotherHostIsAnotherHolder: pids say nothing across hosts, names do.
func TestProcessOfAnotherHostIsAnotherHolder(t *testing.T) {
	tr := newDriver(t)
	free := func(f *storepb.Facts) *storepb.Facts { f.Guard = storepb.Guard_ANYONE; return f }
	tr.take(here, "pid", free(pidFacts(storepb.Format_PID, processOf(1))))
	tr.fill(there, RootIno, "pid", free(pidFacts(storepb.Format_PID, processOf(1)))).ok()
	require.Equal(t, tr.index, tr.token("pid"))

	tr.take(here, "swarm", factsFor(storepb.Format_SWARM, "worker", 0))
	token := tr.token("swarm")
	tr.fill(there, RootIno, "swarm", factsFor(storepb.Format_SWARM, "worker", 0)).ok()
	require.Equal(t, token, tr.token("swarm"))
}

// TestEveryNameOfAFileGetsItsHolder: each has a token of its own.
func TestEveryNameOfAFileGetsItsHolder(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "a", towerFacts("x"))
	tr.link(ino, RootIno, "b").ok()
	a, b := tr.token("a"), tr.token("b")
	require.Less(t, a, b)
	tr.fill(here, RootIno, "a", towerFacts("x")).ok()
	require.Equal(t, []uint64{a, b}, []uint64{tr.token("a"), tr.token("b")})
	tr.fill(here, RootIno, "b", towerFacts("y")).ok()
	require.Equal(t, []uint64{tr.index, tr.index}, []uint64{tr.token("a"), tr.token("b")})
}

// TestTokenAfterUndoneRename: the name may have been somebody else's in between, so it is a new holder's.
func TestTokenAfterUndoneRename(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "old", towerFacts("x"))
	cmd := tr.next(here, noReplace(RootIno, "old", RootIno, "new"))
	tr.apply(cmd).ok()
	tr.take(there, "old", nil)
	between := tr.token("old")
	tr.unlink(there, RootIno, "old").ok()
	tr.cancel(cmd).ok()
	tr.requireNone("new")
	require.Equal(t, tr.index, tr.token("old"))
	require.Less(t, between, tr.token("old"))
}

// TestCancelKeepsTheLockOfAnotherHolder: nobody was told of the creation, but somebody found the file and
// made it a lock.
func TestCancelKeepsTheLockOfAnotherHolder(t *testing.T) {
	for name, make := range map[string]*storepb.Op{
		"create":           createOp(RootIno, "new", true),
		"link":             opOf(&storepb.Link{Ino: 2, Parent: RootIno, Name: []byte("new")}),
		"rename NOREPLACE": noReplace(RootIno, "old", RootIno, "new"),
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "old", factsFor(storepb.Format_SWARM, "x", 0))
			cmd := tr.next(here, make)
			tr.apply(cmd).ok()
			tr.fill(there, RootIno, "new", factsFor(storepb.Format_SWARM, "y", 0)).ok()
			theirs := tr.at(RootIno, "new")
			tr.cancel(cmd).ok()
			require.Equal(t, theirs, tr.at(RootIno, "new"))
			require.Equal(t, "y", tr.lock("new").GetFacts().GetHolder())
		})
	}
}

// TestLockTellsWhatItsContentSays, and of what the content was before only what guards it still for a moment.
func TestLockTellsWhatItsContentSays(t *testing.T) {
	tr := newDriver(t)
	facts := factsFor(storepb.Format_SEMAPHORE, "1", tr.now+int64(time.Hour))
	facts.Tag = "deploy"
	tr.take(here, "lock", facts)
	requireSame(t, facts, tr.lock("lock").GetFacts())
	tr.fill(here, RootIno, "lock", nil).ok()
	guard := &storepb.Facts{Format: storepb.Format_SEMAPHORE, Holder: "1", Host: "here", Pid: 1, IssuedAt: 1, Guard: storepb.Guard_HOST, OnStale: storepb.OnStale_KEEP}
	requireSame(t, guard, tr.lock("lock").GetFacts())
	tr.tick(contentGrace)
	requireSame(t, &storepb.Facts{Format: storepb.Format_NONE, Host: "here", Guard: storepb.Guard_ANYONE, OnStale: storepb.OnStale_KEEP}, tr.lock("lock").GetFacts())
	e, _ := tr.ns.tree.entry(RootIno, []byte("lock"))
	requireSame(t, facts, e.known.message())
}

// TestRemovalOfOneTokenOnly, as the page asks for it: what has come to that name since is not meant.
func TestRemovalOfOneTokenOnly(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", nil)
	remove := func(token uint64) step {
		return tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock"), IfToken: token}))
	}
	remove(tr.token("lock") - 1).is(storepb.Code_NOT_FOUND)
	require.Equal(t, ino, tr.at(RootIno, "lock"))
	remove(tr.token("lock")).ok()
	tr.requireNone("lock")
}

// TestContentOfASessionThatIsOver is refused in the one after it: descriptors end with their session.
func TestContentOfASessionThatIsOver(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	write := func(session uint64) step {
		op := tr.fillOp(here, RootIno, "lock", towerFacts("holder"))
		op.Session = session
		return tr.do(here, opOf(op))
	}
	write(there).is(storepb.Code_SESSION_LOST)
	write(here).ok()
}
