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

// reach is a way to take a lock away from its holder, or to put something else in its place.
type reach struct {
	name string
	op   func(tr *driver, session uint64) *storepb.Op
	// overwrites: it puts something in the lock's place.
	overwrites bool
}

// reaches are all ways to the lock "lock", from a session with a file "tmp".
func reaches() []reach {
	return []reach{
		{"unlink", func(*driver, uint64) *storepb.Op {
			return opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock")})
		}, false},
		{"rename away", func(*driver, uint64) *storepb.Op { return renameOp(RootIno, "lock", RootIno, "away") }, false},
		{"rename away, NOREPLACE", func(*driver, uint64) *storepb.Op { return noReplace(RootIno, "lock", RootIno, "away") }, false},
		{"rename over another", func(*driver, uint64) *storepb.Op { return renameOp(RootIno, "lock", RootIno, "tmp") }, false},
		{"exchange", func(*driver, uint64) *storepb.Op {
			op := renameOp(RootIno, "lock", RootIno, "tmp")
			op.GetRename().Exchange = true
			return op
		}, false},
		{"rename over it", func(*driver, uint64) *storepb.Op { return renameOp(RootIno, "tmp", RootIno, "lock") }, true},
		{"exchange for it", func(*driver, uint64) *storepb.Op {
			op := renameOp(RootIno, "tmp", RootIno, "lock")
			op.GetRename().Exchange = true
			return op
		}, true},
		{"write", func(tr *driver, session uint64) *storepb.Op {
			return opOf(tr.fillOp(session, RootIno, "lock", towerFacts("y")))
		}, true},
		{"truncate", func(tr *driver, session uint64) *storepb.Op {
			return opOf(tr.fillOp(session, RootIno, "lock", nil))
		}, true},
	}
}

// guarded has a lock with facts, and a temporary file.
func guarded(tb testing.TB, facts *storepb.Facts) *driver {
	tr := newDriver(tb)
	tr.take(here, "lock", facts)
	tr.do(here, createOp(RootIno, "tmp", true)).ok()
	tr.wait(time.Minute) // nobody is just writing to one of them
	return tr
}

// requireRefused wants a refusal that changes nothing and is an event.
func (tr *driver) requireRefused(session uint64, op *storepb.Op, code storepb.Code) {
	tr.tb.Helper()
	tr.announceAll()
	before, locks, event := tr.names(), tr.ns.Query(listLocks(0, "", 0)), tr.lastEvent()
	result := tr.do(session, op).is(code)
	require.NotEmpty(tr.tb, result.GetMessage())
	requireSame(tr.tb, &storepb.Result{Code: code, Message: result.GetMessage()}, result)
	require.Equal(tr.tb, before, tr.names())
	requireSame(tr.tb, locks, tr.ns.Query(listLocks(0, "", 0)))
	events := tr.eventsSince(event)
	require.Len(tr.tb, events, 1)
	require.Equal(tr.tb, eventRefused, events[0].GetEvent())
	require.Equal(tr.tb, result.GetMessage(), events[0].GetReason())
	require.Equal(tr.tb, tr.hosts[session], events[0].GetBy().GetHost())
}

// TestHostGuard: a live lock is taken from its host only.
func TestHostGuard(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := guarded(t, towerFacts("x"))
			tr.requireRefused(there, way.op(tr, there), storepb.Code_BUSY)
			tr.open(3, "here", "boot").ok()
			tr.do(3, way.op(tr, 3)).ok()
		})
	}
}

// TestGuardOfAnyone, by the format or by a rule.
func TestGuardOfAnyone(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := guarded(t, factsFor(storepb.Format_SWARM, "x", 0))
			tr.do(there, way.op(tr, there)).ok()
			tr = guarded(t, towerFacts("x"))
			tr.rule(&storepb.Rule{Pattern: "lock", Guard: "anyone"}).ok()
			tr.do(there, way.op(tr, there)).ok()
		})
	}
}

// TestOwnerGuard: only force gets behind it.
func TestOwnerGuard(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			facts := factsFor(storepb.Format_FORRST, "x", 0)
			facts.Guard = storepb.Guard_OWNER
			tr := guarded(t, facts)
			tr.requireRefused(here, way.op(tr, here), storepb.Code_BUSY)
		})
	}
}

// TestGuardByRule makes a file of no format its host's; the host is who wrote to it last.
func TestGuardByRule(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := guarded(t, nil)
			tr.rule(&storepb.Rule{Pattern: "lock", Guard: "host"}).ok()
			tr.requireRefused(there, way.op(tr, there), storepb.Code_BUSY)
			tr.rule(&storepb.Rule{Pattern: "lock", Guard: "anyone"}).ok()
			tr.write(there, tr.at(RootIno, "lock"), "mine").ok()
			tr.rule(&storepb.Rule{Pattern: "lock", Guard: "host"}).ok()
			tr.requireRefused(here, way.op(tr, here), storepb.Code_BUSY)
			tr.do(there, way.op(tr, there)).ok()
		})
	}
}

func TestStaleLockMayBeTakenByAnyone(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", tr.now+int64(10*time.Second)))
			tr.file(RootIno, "tmp")
			tr.tick(time.Minute)
			tr.do(there, way.op(tr, there)).ok()

			tr = guarded(t, keptFacts(processOf(1)))
			tr.requireRefused(there, way.op(tr, there), storepb.Code_BUSY)
			tr.gone(here, processOf(1)).ok()
			tr.do(there, way.op(tr, there)).ok()
		})
	}
}

// TestStaleButNotMarked: more locks are stale than one command marks.
func TestStaleButNotMarked(t *testing.T) {
	tr := newDriver(t)
	expires := tr.now + int64(24*time.Hour)
	for i := range expiryBatch {
		tr.take(here, nameOf(i), factsFor(storepb.Format_TOWER, "x", expires))
	}
	tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", expires+1))
	tr.wait(24 * time.Hour)
	tr.unlink(there, RootIno, "lock").ok()
}

// TestUnreachableLockIsGuarded: a silent host is not a dead one.
func TestUnreachableLockIsGuarded(t *testing.T) {
	tr := guarded(t, pidFacts(storepb.Format_PID, processOf(1)))
	tr.giveUp(here)
	tr.requireState("unreachable", "lock")
	tr.requireRefused(there, reaches()[0].op(tr, there), storepb.Code_BUSY)
}

func TestForce(t *testing.T) {
	for name, facts := range map[string]*storepb.Facts{
		"host": towerFacts("x"), "owner": {Format: storepb.Format_FORRST, Holder: "x", Guard: storepb.Guard_OWNER}, "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			tr := guarded(t, facts)
			tr.announceAll()
			event := tr.lastEvent()
			tr.do(there, opOf(&storepb.Unlink{
				Parent: RootIno, Name: []byte("lock"), Force: true,
				Observations: []*storepb.Observation{{Parent: RootIno, Name: []byte("lock"), Token: 1}},
			})).ok()
			require.Len(t, tr.ns.removed, 1)
			require.Zero(t, tr.ns.removed[0].Session, "the kernel of its own host is told, too")
			tr.requireNone("lock")
			events := tr.requireEvents(event, "lock_removed lock")
			require.Equal(t, "by force", events[0].GetReason())
			require.Equal(t, "there", events[0].GetBy().GetHost())
		})
	}
}

func TestForceRemovesNoDirectoryWithEntries(t *testing.T) {
	tr := newDriver(t)
	tr.file(tr.mkdir(RootIno, "d"), "f")
	tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("d"), Directory: true, Force: true})).is(storepb.Code_NOT_EMPTY)
	tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("d"), Force: true})).is(storepb.Code_IS_DIRECTORY)
}

// TestDirectoryWithGuardedLock is not moved from elsewhere, however deep the lock is.
func TestDirectoryWithGuardedLock(t *testing.T) {
	for name, op := range map[string]*storepb.Op{
		"rename":           renameOp(RootIno, "dir", RootIno, "away"),
		"over an empty":    renameOp(RootIno, "dir", RootIno, "empty"),
		"exchange":         {Op: &storepb.Op_Rename{Rename: &storepb.Rename{Parent: 1, Name: []byte("dir"), NewParent: 1, NewName: []byte("empty"), Exchange: true}}},
		"exchange for it":  {Op: &storepb.Op_Rename{Rename: &storepb.Rename{Parent: 1, Name: []byte("empty"), NewParent: 1, NewName: []byte("dir"), Exchange: true}}},
		"NOREPLACE rename": noReplace(RootIno, "dir", RootIno, "away"),
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			deep := tr.mkdir(tr.mkdir(RootIno, "dir"), "deep")
			tr.mkdir(RootIno, "empty")
			tr.file(deep, "lock")
			tr.fill(here, deep, "lock", factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Minute))).ok()
			tr.requireRefused(there, op, storepb.Code_BUSY)
			tr.tick(2 * time.Minute)
			tr.do(there, op).ok()
			requireConsistent(t, tr.ns)
		})
	}
}

// TestHardLinkIsGuardedToo: content is overwritten under all names at once.
func TestHardLinkIsGuardedToo(t *testing.T) {
	tr := guarded(t, nil)
	tr.link(tr.at(RootIno, "lock"), RootIno, "name").ok()
	tr.rule(&storepb.Rule{Pattern: "lock", Guard: "host"}).ok()
	tr.requireRefused(there, opOf(tr.fillOp(there, RootIno, "name", nil)), storepb.Code_BUSY)
	tr.unlink(there, RootIno, "name").ok()
}

// TestGuardOutlastsTruncation for a moment: a holder that truncates is about to write.
func TestGuardOutlastsTruncation(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := newDriver(t)
			tr.file(RootIno, "tmp")
			tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Hour)))
			tr.fill(here, RootIno, "lock", nil).ok()
			tr.requireRefused(there, way.op(tr, there), storepb.Code_BUSY)
			tr.wait(contentGrace)
			tr.do(there, way.op(tr, there)).ok()
		})
	}
}

// TestEmptiedLockIsALockWhileItIsGuarded: as long as another host may not remove it, every inspection tells of a lock and of its format.
func TestEmptiedLockIsALockWhileItIsGuarded(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		for _, facts := range []*storepb.Facts{keptFacts(processOf(1)), factsFor(storepb.Format_SEMAPHORE, "x", 0), towerFacts("x")} {
			t.Run(fmt.Sprintf("%v, exclusive: %v", facts.GetFormat(), exclusive), func(t *testing.T) {
				tr := newDriver(t)
				tr.says = storepb.NameSays_SAYS_NOTHING
				tr.do(here, createOp(RootIno, "f", exclusive)).ok()
				tr.fill(here, RootIno, "f", facts).ok()
				tr.requireLock(true, RootIno, "f")
				tr.fill(here, RootIno, "f", nil).ok()
				tr.requireLock(true, RootIno, "f")
				require.Equal(t, facts.GetFormat(), tr.lock("f").GetFacts().GetFormat())
				tr.requireRefused(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("f")}), storepb.Code_BUSY)
				tr.tick(contentGrace + time.Second)
				require.Empty(t, tr.lock("f").GetBecause())
				require.Empty(t, tr.lock("f").GetRemover())
				require.Empty(t, tr.ns.Query(listLocks(0, "", 0)).GetLocks())
				require.False(t, tr.ns.Query(getLock(RootIno, "f")).GetObservations()[0].GetData(), "a cached look may be older")
				tr.unlink(there, RootIno, "f").ok()
			})
		}
	}
}

// TestGuardOfAnEmptiedLockIsNotRenewed by changes other than of its content: a user could keep a lock guarded forever.
func TestGuardOfAnEmptiedLockIsNotRenewed(t *testing.T) {
	for name, op := range map[string]func(*driver, uint64) *storepb.Op{
		"chmod": func(_ *driver, ino uint64) *storepb.Op {
			return opOf(&storepb.SetAttr{Ino: ino, Mode: proto.Uint32(0o600)})
		},
		"setxattr": func(_ *driver, ino uint64) *storepb.Op {
			return opOf(&storepb.SetXattr{Ino: ino, Name: []byte("user.x"), Value: []byte("v")})
		},
		"link": func(_ *driver, ino uint64) *storepb.Op {
			return opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("second")})
		},
		"truncate": func(tr *driver, _ uint64) *storepb.Op { return opOf(tr.fillOp(here, RootIno, "lock", nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			ino := tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Hour)))
			tr.fill(here, RootIno, "lock", nil).ok()
			tr.wait(contentGrace - 3*time.Second) // each command takes a second
			tr.do(here, op(tr, ino)).ok()
			tr.requireRefused(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock")}), storepb.Code_BUSY)
			tr.do(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock")})).ok()
		})
	}
}

// TestEmptiedLockThatIsRemovedIsNoData: its holder is about to write to it, and has to learn that the lock is gone.
func TestEmptiedLockThatIsRemovedIsNoData(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "f", factsFor(storepb.Format_SWARM, "x", 0))
	tr.fill(here, RootIno, "f", nil).ok()
	tr.unlink(there, RootIno, "f").ok()
	tr.pin(here, ino).ok()
	require.Equal(t, storepb.Code_STALE, tr.write(here, ino, "x").GetCode())
}

// TestBeadsAreOverwrittenByTheirOwnProcesses, and removed by any of their host.
func TestBeadsAreOverwrittenByTheirOwnProcesses(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := guarded(t, pidFacts(storepb.Format_BEADS, processOf(1)))
			with := func(lineage ...*storepb.Process) *storepb.Command {
				cmd := tr.next(here, way.op(tr, here))
				cmd.Caller.Lineage = lineage
				return cmd
			}
			tr.requireRefused(there, way.op(tr, there), storepb.Code_BUSY)
			if !way.overwrites {
				tr.do(here, way.op(tr, here)).ok()
				return
			}
			tr.announceAll()
			event := tr.lastEvent()
			requireSame(t, &storepb.Result{Code: storepb.Code_NEED_LINEAGE}, tr.do(here, way.op(tr, here)).Result)
			tr.requireEvents(event)
			other := processOf(1)
			other.Start++
			cmd := with(processOf(3), other, nil)
			require.NotEmpty(t, tr.apply(cmd).is(storepb.Code_BUSY).GetMessage())
			events := tr.requireEvents(event, "removal_refused lock")
			require.Empty(t, events[0].GetBy().GetLineage())
			tr.apply(with(processOf(3), processOf(2), processOf(1))).ok()
		})
	}
}

// TestBeadsOfAnUnknownProcess: nobody can tell who descends from it.
func TestBeadsOfAnUnknownProcess(t *testing.T) {
	tr := guarded(t, pidFacts(storepb.Format_BEADS, nil))
	tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_BEADS, nil)).ok()
}

// withObservations is a removal or replacement by somebody who saw that.
func withObservations(op *storepb.Op, seen []*storepb.Observation) *storepb.Op {
	switch op := op.GetOp().(type) {
	case *storepb.Op_Unlink:
		op.Unlink.Observations = seen
	case *storepb.Op_Rename:
		op.Rename.Observations = seen
	case *storepb.Op_SetContent:
		op.SetContent.Observations = seen
	}
	return op
}

// TestLooks: a removal or replacement is of the lock that its caller saw.
func TestLooks(t *testing.T) {
	for _, way := range reaches() {
		t.Run(way.name, func(t *testing.T) {
			tr := guarded(t, factsFor(storepb.Format_SWARM, "x", 0))
			right := &storepb.Observation{Parent: RootIno, Name: []byte("lock"), Token: tr.token("lock")}
			wrong := &storepb.Observation{Parent: RootIno, Name: []byte("lock"), Token: tr.token("lock") - 1}
			others := &storepb.Observation{Parent: RootIno, Name: []byte("elsewhere"), Token: 1}
			below := &storepb.Observation{Parent: 77, Name: []byte("lock"), Token: 1}
			code := storepb.Code_NOT_FOUND
			if way.overwrites {
				code = storepb.Code_STALE
			}
			tr.requireRefused(here, withObservations(way.op(tr, here), []*storepb.Observation{others, wrong}), code)
			tr.requireRefused(there, withObservations(way.op(tr, there), []*storepb.Observation{wrong, others}), code)
			tr.do(there, withObservations(way.op(tr, there), []*storepb.Observation{others, right, below})).ok()
		})
	}
}

// TestLookAtTheDirectory: mkdir was the lock, and what is in it belongs to it.
func TestLookAtTheDirectory(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "lock")
	first := tr.do(here, createOp(dir, "pid", true)).ok().GetObservations()
	require.Len(t, first, 2)
	requireSame(t, &storepb.Observation{Parent: RootIno, Name: []byte("lock"), Token: tr.token("lock")}, first[1])
	tr.unlink(here, dir, "pid").ok()
	tr.rmdir(RootIno, "lock").ok()
	dir = tr.mkdir(RootIno, "lock")
	tr.file(dir, "pid")

	seen := first[1:]
	pid := []byte("pid")
	tr.requireRefused(there, opOf(&storepb.Unlink{Parent: dir, Name: pid, Observations: seen}), storepb.Code_NOT_FOUND)
	tr.requireRefused(there, opOf(&storepb.Rename{
		Parent: dir, Name: pid, NewParent: RootIno, NewName: pid, Observations: seen,
	}), storepb.Code_NOT_FOUND)
	truncation := tr.fillOp(there, dir, "pid", nil)
	truncation.Observations = seen
	tr.requireRefused(there, opOf(truncation), storepb.Code_STALE)
	tr.unlink(there, dir, "pid").ok()
	tr.requireRefused(there, opOf(&storepb.Unlink{
		Parent: RootIno, Name: []byte("lock"), Directory: true, Observations: seen,
	}), storepb.Code_NOT_FOUND)
	tr.rmdir(RootIno, "lock").ok()
}

// TestLooksComeBack with everything that reads or makes a name, so that the next call can tell of them.
func TestLooksComeBack(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir")
	ino := tr.file(dir, "a")
	requireObserved := func(result *storepb.Result, name string) {
		t.Helper()
		require.Len(t, result.GetObservations(), 2)
		requireSame(t, &storepb.Observation{Parent: dir, Name: []byte(name), Token: tr.lockIn(dir, name).GetToken()}, result.GetObservations()[0])
		requireSame(t, &storepb.Observation{Parent: RootIno, Name: []byte("dir"), Token: tr.token("dir")}, result.GetObservations()[1])
	}
	read := func(name *storepb.Observation) *storepb.Result {
		return step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: ino, Name: name}}}), t}.ok()
	}
	byName := &storepb.Observation{Parent: dir, Name: []byte("a")}
	require.True(t, read(byName).GetObservations()[0].GetEmpty())
	require.Empty(t, read(nil).GetObservations())
	require.Empty(t, read(&storepb.Observation{Parent: RootIno, Name: []byte("a")}).GetObservations())
	require.Empty(t, read(&storepb.Observation{Parent: RootIno, Name: []byte("dir")}).GetObservations(), "it is not that inode's")
	requireObserved(tr.fill(here, dir, "a", towerFacts("x")).ok(), "a")
	requireObserved(tr.fill(here, dir, "a", towerFacts("y")).ok(), "a")
	requireObserved(read(byName), "a")
	requireObserved(tr.link(ino, dir, "b").ok(), "b")
	requireObserved(tr.rename(dir, "b", dir, "c").ok(), "c")
	requireObserved(tr.create(dir, "d", someFile).ok(), "d")
}

// TestExchangeLooksAtBothNames: who made it knows both.
func TestExchangeLooksAtBothNames(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "a", towerFacts("x"))
	tr.take(here, "b", towerFacts("y"))
	seen := tr.exchange(RootIno, "a", RootIno, "b").ok().GetObservations()
	require.Len(t, seen, 2)
	exchanged := tr.index
	for _, o := range seen {
		require.Equal(t, exchanged, o.GetToken())
		tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: o.GetName(), Observations: seen})).ok()
	}
	require.Empty(t, tr.names())
}

// TestLookAtAnEmptyLock: there was nothing to judge, and its holder was about to write.
func TestLookAtAnEmptyLock(t *testing.T) {
	empty := func(tr *driver) []*storepb.Observation {
		return []*storepb.Observation{{Parent: RootIno, Name: []byte("lock"), Token: tr.token("lock"), Empty: true}}
	}
	unlink := func(tr *driver) *storepb.Op {
		return opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock"), Observations: empty(tr)})
	}
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	tr.requireRefused(there, unlink(tr), storepb.Code_BUSY)
	tr.requireRefused(here, unlink(tr), storepb.Code_BUSY)
	tr.wait(contentGrace)
	tr.do(there, unlink(tr)).ok()

	tr.take(here, "lock", factsFor(storepb.Format_SWARM, "x", tr.now+int64(time.Minute)))
	tr.wait(contentGrace)
	tr.requireRefused(there, unlink(tr), storepb.Code_BUSY)
	tr.tick(2 * time.Minute)
	tr.do(there, unlink(tr)).ok()
}

// TestStrangeLooks are no looks.
func TestStrangeLooks(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", nil)
	tr.do(here, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock"), Observations: []*storepb.Observation{
		nil, {}, {Parent: math.MaxUint64, Name: []byte("lock")}, {Parent: RootIno, Token: 5},
	}})).ok()
}
