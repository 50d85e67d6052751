package namespace

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestDataIsNeverRefused: to names that are never made exclusively, with contents that say nothing, anybody may do what a plain
// tree lets them do, whatever they saw of them before, and no event tells of it.
func TestDataIsNeverRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		m := newModelOf(ns)
		g := newGenerator(t, ns)
		directories := rapid.Bool().Draw(t, "directories") // they are made exclusively: nobody looks at them here
		for index := uint64(1); index <= uint64(1+g.below(pick(g, 20, 50, 200))); index++ {
			cmd := g.next()
			if !g.makeData(cmd, directories) {
				cmd = &storepb.Command{Time: cmd.GetTime(), Op: opOf(&storepb.RemoveMember{})}
			}
			plain := proto.Clone(cmd).(*storepb.Command)
			g.look(cmd, directories)
			t.Logf("%d: %v", index, cmd)
			want, refusals := m.apply(index, plain)
			got := ns.Apply(ids.Index(index), cmd)
			if refusals != nil {
				require.Contains(t, refusals, got.GetCode())
			} else {
				requireSame(t, want.result, withoutObservations(got))
			}
			m.settle(cmd, got, want)
			requireConsistent(t, ns)
			ns.tree.byName.Scan(func(e *entry) bool {
				in, _ := ns.tree.inode(e.ino)
				require.True(t, in.isDir() || ns.observation(e).GetData(), "%q is data", e.name)
				return true
			})
		}
		require.Zero(t, countOf(ns, eventRefused))
		if !directories {
			require.Zero(t, countOf(ns, eventAcquired))
		}
	})
}

// makeData has a command make no name exclusively, and no content that says anything. It answers false for one that would.
func (g *generator) makeData(cmd *storepb.Command, directories bool) bool {
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_Create:
		op.Create.Exclusive, op.Create.Facts, op.Create.Content = false, nil, nil
		kind := op.Create.GetMode() & syscall.S_IFMT
		return kind == syscall.S_IFREG || directories && kind == syscall.S_IFDIR
	case *storepb.Op_Link:
		return false
	case *storepb.Op_Rename:
		op.Rename.NoReplace = false
	case *storepb.Op_SetContent:
		op.SetContent.Facts = nil
	}
	return true
}

// look has somebody of anywhere do it, who saw things that were never there.
func (g *generator) look(cmd *storepb.Command, directories bool) {
	cmd.Caller = proto.Clone(cmd.GetCaller()).(*storepb.Caller)
	if cmd.GetCaller() != nil {
		cmd.Caller.PidNamespace, cmd.Caller.Lineage = pick[uint64](g, 0, 1, 2), pick(g, nil, []*storepb.Process{g.process()})
	}
	var seen []*storepb.Observation
	for _, e := range g.ns.tree.byName.Items() {
		if in, found := g.ns.tree.inode(e.ino); found && (!directories || !in.isDir()) && g.often(70) {
			seen = append(seen, &storepb.Observation{
				Parent: uint64(e.parent), Name: []byte(e.name), Token: uint64(pick(g, e.token, e.token-1, 1)), Empty: g.often(50),
			})
		}
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_Unlink:
		op.Unlink.Observations = seen
	case *storepb.Op_Rename:
		op.Rename.Observations = seen
	case *storepb.Op_SetContent:
		op.SetContent.Observations = seen
	}
}

func countOf(ns *Namespace, event string) uint64 {
	count, _ := ns.events.counts.Get(event)
	return count
}

// writeAs writes to a file, with what its mount worked out of the content.
func (tr *driver) writeAs(session, ino uint64, content string, facts *storepb.Facts) step {
	tr.tb.Helper()
	if facts.GetFormat() != 0 {
		facts.Host = tr.hosts[session]
	}
	return tr.do(session, opOf(&storepb.SetContent{Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte(content), Facts: facts}))
}

// requireLock tells whether a name in a directory is a lock, by all who tell of it.
func (tr *driver) requireLock(is bool, parent uint64, name string) {
	tr.tb.Helper()
	result := step{tr.ns.Query(getLock(parent, name)), tr.tb}.ok()
	require.Equal(tr.tb, is, result.GetLocks()[0].GetBecause() != "", "%v", result.GetLocks())
	require.Equal(tr.tb, !is, result.GetObservations()[0].GetData())
	listed := false
	for _, lock := range tr.ns.Query(listLocks(0, "", 0)).GetLocks() {
		listed = listed || lock.GetParent() == parent && string(lock.GetName()) == name
	}
	isFull := tr.attr(result.GetAttr().GetIno()).GetMode()&syscall.S_IFMT == syscall.S_IFDIR && len(listing(tr.ns, result.GetAttr().GetIno(), 0)) > 2
	require.Equal(tr.tb, is && !isFull, listed)
}

// TestWhatIsALock by how its name was created, what that says, and what is in it.
func TestWhatIsALock(t *testing.T) {
	evidence := func(pieces ...string) *storepb.Facts { return &storepb.Facts{Evidence: pieces} }
	conditional := pidFacts(storepb.Format_PID, processOf(1))
	conditional.Conditional = true
	invalid := &storepb.Facts{Format: storepb.Format_TOWER, Invalid: "ttl: missing", Guard: storepb.Guard_HOST, OnStale: storepb.OnStale_KEEP}
	const lock, nothing, data = storepb.NameSays_SAYS_LOCK, storepb.NameSays_SAYS_NOTHING, storepb.NameSays_SAYS_DATA
	long := strings.Repeat("x", lockfact.Short+1)
	for name, row := range map[string]struct {
		content          string
		facts            *storepb.Facts
		says             storepb.NameSays
		exclusive, plain bool // whether it is a lock under a name created so
	}{
		"empty":                               {"", nil, nothing, false, false},
		"empty, named lock":                   {"", nil, lock, true, false},
		"empty, named data":                   {"", nil, data, false, false},
		"a format":                            {long, towerFacts("x"), nothing, true, true},
		"a format, named data":                {long, towerFacts("x"), data, true, true},
		"a pid":                               {"1", pidFacts(storepb.Format_PID, processOf(1)), nothing, true, true},
		"a pid that data could have":          {"web1:1", conditional, nothing, true, false},
		"a pid that data could have, a lock":  {"web1:1", conditional, lock, true, true},
		"a pid that data could have, as data": {"web1:1", conditional, data, true, false},
		"invalid":                             {long, invalid, nothing, true, true},
		"one piece of evidence":               {long, evidence("names its host"), nothing, false, false},
		"one piece of evidence, named lock":   {long, evidence("names its host"), lock, true, false},
		"one piece of evidence, named data":   {long, evidence("names its host"), data, false, false},
		"two pieces of evidence":              {long, evidence("names its host", "has the time"), nothing, true, false},
		"two pieces of evidence, named data":  {long, evidence("names its host", "has the time"), data, true, false},
		"no evidence":                         {"x", nil, nothing, false, false},
		"no evidence, named lock":             {long, nil, lock, false, false},
		"taken":                               {"taken\n", nil, lock, true, false},
		"one piece of evidence, short":        {"web1", evidence("names its host"), nothing, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.says = row.says
			plain := tr.do(here, createOp(RootIno, "plain", false)).ok().GetAttr().GetIno()
			exclusive := tr.do(here, createOp(RootIno, "exclusive", true)).ok().GetAttr().GetIno()
			for _, ino := range []uint64{plain, exclusive} {
				tr.writeAs(here, ino, row.content, row.facts).ok()
			}
			tr.link(plain, RootIno, "linked").ok()
			tr.renameNoReplace(RootIno, "linked", RootIno, "noreplace").ok()
			tr.link(exclusive, RootIno, "moving").ok()
			tr.rename(RootIno, "moving", RootIno, "moved").ok()
			tr.do(here, createOp(RootIno, "replaced", true)).ok()
			tr.link(exclusive, RootIno, "moving").ok()
			tr.rename(RootIno, "moving", RootIno, "replaced").ok()
			for range 2 {
				for _, name := range []string{"exclusive", "noreplace"} {
					tr.requireLock(row.exclusive, RootIno, name)
					require.True(t, tr.lock(name).GetExclusive())
					require.Equal(t, "here", tr.lock(name).GetMadeOn())
				}
				for _, name := range []string{"plain", "moved", "replaced"} {
					tr.requireLock(row.plain, RootIno, name)
					require.False(t, tr.lock(name).GetExclusive())
				}
				tr.restart()
			}
			tr.rule(&storepb.Rule{Pattern: "*", Format: "data"}).ok()
			for _, name := range []string{"exclusive", "noreplace", "plain", "moved", "replaced"} {
				tr.requireLock(false, RootIno, name)
				tr.do(there, withObservations(opOf(unlinkOp(name)), []*storepb.Observation{{Parent: RootIno, Name: []byte(name), Token: 1, Empty: true}})).ok()
			}
		})
	}
}

// TestNameOfTheDirectoryCountsAsItWas when the name in it came to be, whatever becomes of the directory.
func TestNameOfTheDirectoryCountsAsItWas(t *testing.T) {
	tr := newDriver(t)
	locks := tr.mkdir(RootIno, "locks")
	tr.says = storepb.NameSays_SAYS_NOTHING
	other := tr.mkdir(RootIno, "other")
	for _, dir := range []uint64{locks, other} {
		tr.file(dir, "job")
	}
	tr.do(here, dataNamed(createOp(locks, ".gitkeep", true))).ok()
	tr.rename(RootIno, "locks", RootIno, "tmp").ok()
	tr.says = storepb.NameSays_SAYS_LOCK
	tr.rename(RootIno, "other", RootIno, "locks").ok()
	tr.says = storepb.NameSays_SAYS_NOTHING
	for range 2 {
		tr.requireLock(true, locks, "job")
		tr.requireLock(false, other, "job")
		tr.requireLock(false, locks, ".gitkeep")
		tr.restart()
	}
	tr.file(other, "new")
	tr.requireLock(true, other, "new")
	tr.renameNoReplace(other, "job", other, "again").ok()
	tr.requireLock(true, other, "again")
	tr.renameNoReplace(locks, "job", locks, "again").ok()
	tr.requireLock(false, locks, "again")
	cmd := tr.next(here, noReplace(other, "new", locks, "new"))
	tr.apply(cmd).ok()
	tr.requireLock(false, locks, "new")
	tr.cancel(cmd).ok()
	tr.requireLock(true, other, "new")
}

// TestWhatSeveralHostsAppendToIsNoLock on evidence, however much each line has of it.
func TestWhatSeveralHostsAppendToIsNoLock(t *testing.T) {
	evidence := &storepb.Facts{Evidence: []string{"names its host", "names process 1"}}
	tr := newDriver(t)
	ino := tr.do(here, dataNamed(createOp(RootIno, "log", true))).ok().GetAttr().GetIno()
	tr.writeAs(here, ino, "here 1\n", evidence).ok()
	tr.requireLock(true, RootIno, "log")
	tr.writeAs(there, ino, "here 1\nthere 1\n", evidence).ok()
	tr.requireLock(false, RootIno, "log")
	tr.restart()
	tr.writeAs(there, ino, "here 1\nthere 1\nthere 1\n", evidence).ok()
	tr.requireLock(false, RootIno, "log")
	tr.writeAs(there, ino, "there 2\n", evidence).ok()
	tr.requireLock(true, RootIno, "log")
}

// TestHolderThatWritesMoreStaysTheHolder: of a semaphore lock the pid comes first, which is a pid lock by itself.
func TestHolderThatWritesMoreStaysTheHolder(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", nil)
	tr.writeAs(here, ino, "pid=1\n", pidFacts(storepb.Format_PID, processOf(1))).ok()
	token := tr.token("lock")
	tr.writeAs(here, ino, "pid=1\ntimestamp=2\n", factsFor(storepb.Format_SEMAPHORE, "1", 0)).ok()
	require.Equal(t, token, tr.token("lock"))
	tr.announceAll()
	tr.requireEvents(0, "lock_acquired lock")
}

// TestDirectoryIsALockForWhatIsInIt, and while there is nothing in it.
func TestDirectoryIsALockForWhatIsInIt(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir")
	tr.requireLock(true, RootIno, "dir")
	data := tr.do(here, createOp(dir, "data", false)).ok().GetAttr().GetIno()
	tr.requireLock(false, RootIno, "dir")
	tr.mkdir(dir, "below")
	tr.requireLock(false, RootIno, "dir")
	tr.file(dir, "lock")
	tr.requireLock(true, RootIno, "dir")
	tr.restart()
	tr.requireLock(true, RootIno, "dir")
	tr.unlink(here, dir, "lock").ok()
	tr.requireLock(false, RootIno, "dir")
	tr.writeAs(here, data, "x", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.requireLock(true, RootIno, "dir")
	tr.kernelLock(here, data, 1, storepb.LockKind_FLOCK, false).ok()
	tr.requireLock(false, RootIno, "dir")
	tr.rename(dir, "below", RootIno, "below").ok()
	tr.unlink(there, dir, "data").ok()
	tr.requireLock(true, RootIno, "dir")
	tr.requireLock(false, RootIno, "below") // moved by an ordinary rename
	tr.rename(RootIno, "dir", RootIno, "away").ok()
	tr.requireLock(false, RootIno, "away")
}

// TestPIDFileOfAnOrdinaryNameIsStaleAndStays.
func TestPIDFileOfAnOrdinaryNameIsStaleAndStays(t *testing.T) {
	for name, make := range map[string]func(tr *driver){
		"open": func(tr *driver) { tr.do(here, createOp(RootIno, "lock", false)).ok() },
		"rename": func(tr *driver) {
			tr.do(here, createOp(RootIno, "tmp", true)).ok()
			tr.rename(RootIno, "tmp", RootIno, "lock").ok()
		},
		"rename over an exclusive one": func(tr *driver) {
			tr.do(here, createOp(RootIno, "lock", true)).ok()
			tr.do(here, createOp(RootIno, "tmp", true)).ok()
			tr.rename(RootIno, "tmp", RootIno, "lock").ok()
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			make(tr)
			tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(1))).ok()
			tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
			tr.gone(here, processOf(1)).ok()
			tr.tick(24 * time.Hour)
			tr.requireState("stale", "lock")
			tr.restart()
			tr.tick(24 * time.Hour)
			tr.requireState("stale", "lock")
			tr.unlink(there, RootIno, "lock").ok()
		})
	}
}

// TestInvalidLockIsGuardedAndNeverStale.
func TestInvalidLockIsGuardedAndNeverStale(t *testing.T) {
	for _, way := range reaches() {
		for _, format := range []storepb.Format{storepb.Format_TOWER, storepb.Format_SEMAPHORE, storepb.Format_BEADS} {
			t.Run(way.name+" "+format.String(), func(t *testing.T) {
				tr := guarded(t, &storepb.Facts{Format: format, Invalid: "ttl: missing", Guard: storepb.Guard_HOST, OnStale: storepb.OnStale_KEEP})
				tr.rule(&storepb.Rule{Pattern: "lock", StaleAfter: 1, OnStale: "remove", HostTimeout: 1}).ok()
				tr.tick(24 * time.Hour)
				tr.restart()
				tr.requireState("held", "lock")
				require.Equal(t, "ttl: missing", tr.lock("lock").GetFacts().GetInvalid())
				tr.requireRefused(there, way.op(tr, there), storepb.Code_BUSY)
				tr.do(here, way.op(tr, here)).ok()
			})
		}
	}
}

// TestCounterIsNoPIDFile: the number before was none of a process, so this one is one by chance.
func TestCounterIsNoPIDFile(t *testing.T) {
	for name, count := range map[string]func(tr *driver, content string, facts *storepb.Facts){
		"in place": func(tr *driver, content string, facts *storepb.Facts) {
			tr.writeAs(here, tr.at(RootIno, "n"), content, facts).ok()
		},
		"by rename": func(tr *driver, content string, facts *storepb.Facts) {
			ino := tr.do(here, createOp(RootIno, "t", false)).ok().GetAttr().GetIno()
			tr.writeAs(here, ino, content, facts).ok()
			tr.rename(RootIno, "t", RootIno, "n").ok()
		},
		"by exchange": func(tr *driver, content string, facts *storepb.Facts) {
			ino := tr.do(here, createOp(RootIno, "t", false)).ok().GetAttr().GetIno()
			tr.writeAs(here, ino, content, facts).ok()
			tr.exchange(RootIno, "t", RootIno, "n").ok()
			tr.unlink(here, RootIno, "t").ok()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for before, isCounter := range map[string]bool{"0": true, " 41\n": true, "": false, "x": false, "-1": false, "123456789012345678901": false} {
				tr := newDriver(t)
				tr.do(here, createOp(RootIno, "n", false)).ok()
				tr.writeAs(here, tr.at(RootIno, "n"), before, nil).ok()
				count(tr, "42\n", pidFacts(storepb.Format_PID, processOf(42)))
				tr.restart()
				tr.requireLock(!isCounter, RootIno, "n")
				if isCounter {
					require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses())
					count(tr, "43\n", nil)
					tr.do(there, opOf(unlinkOp("n"))).ok()
				}
			}
		})
	}
}

// TestNextPIDOfAPIDFileIsAPID: the number before was a process.
func TestNextPIDOfAPIDFileIsAPID(t *testing.T) {
	tr := newDriver(t)
	ino := tr.take(here, "lock", nil)
	tr.writeAs(here, ino, "1\n", pidFacts(storepb.Format_PID, processOf(1))).ok()
	tr.writeAs(here, ino, "2\n", pidFacts(storepb.Format_PID, processOf(2))).ok()
	require.Equal(t, storepb.Format_PID, tr.lock("lock").GetFacts().GetFormat())
	tr.gone(here, processOf(2)).ok()
	tr.requireNone("lock")
}

// TestWhatMayBeTheBeginningOfALock: a lock that is written to in pieces goes on to be one in between.
func TestWhatMayBeTheBeginningOfALock(t *testing.T) {
	for _, row := range []struct {
		format  lockfact.Format
		content string
		may     bool
	}{
		{lockfact.Semaphore, "", true},
		{lockfact.Semaphore, " \n", false},
		{lockfact.Semaphore, "p", true},
		{lockfact.Semaphore, "\ntimestamp=2", true},
		{lockfact.Semaphore, "tags", false},
		{lockfact.Semaphore, "{", false},
		{lockfact.PID, "", true},
		{lockfact.PID, "{", false},
		{lockfact.PID, "p", false},
		{lockfact.Tower, "{", true},
		{lockfact.Tower, " {\n ", true},
		{lockfact.Tower, "{ \"held_by", true},
		{lockfact.Tower, "{held_by", false},
		{lockfact.Tower, "pid=", false},
		{lockfact.Tower, "\t", false},
	} {
		require.Equal(t, row.may, mayBeIncomplete(row.format, []byte(row.content)), "%v: %q", row.format, row.content)
	}
}

// TestRuleThatRemovesAppliesToLocksOnly, unless it says that it is for any file.
func TestRuleThatRemovesAppliesToLocksOnly(t *testing.T) {
	long := strings.Repeat("x", lockfact.Short+1)
	const lock, nothing, data = storepb.NameSays_SAYS_LOCK, storepb.NameSays_SAYS_NOTHING, storepb.NameSays_SAYS_DATA
	for name, row := range map[string]struct {
		says      storepb.NameSays
		exclusive bool
		content   string
		facts     *storepb.Facts
		removed   bool
	}{
		"SoftFileLock, empty":                {lock, true, "", nil, true},
		".gitkeep":                           {data, true, "", nil, false},
		"an empty file":                      {nothing, true, "", nil, false},
		"a copy of a list of dependencies":   {lock, true, long, nil, false},
		"a short file":                       {lock, true, "taken", nil, false},
		"the host under a name that says so": {lock, true, "web1", &storepb.Facts{Evidence: []string{"names its host"}}, true},
		"the host under another name":        {nothing, true, "web1", &storepb.Facts{Evidence: []string{"names its host"}}, false},
		"yarn.lock as yarn writes it":        {data, false, long, nil, false},
		"touch of a lock":                    {lock, false, "", nil, false},
		"a format":                           {nothing, false, long, factsFor(storepb.Format_SEMAPHORE, "1", 0), true},
	} {
		for _, anyFile := range []bool{false, true} {
			for _, before := range []bool{false, true} {
				tr := newDriver(t)
				tr.says = row.says
				rule := &storepb.Rule{Pattern: "name", StaleAfter: int64(time.Minute), OnStale: "remove", AnyFile: anyFile}
				if before {
					tr.rule(rule).ok()
				}
				ino := tr.do(here, createOp(RootIno, "name", row.exclusive)).ok().GetAttr().GetIno()
				if row.content != "" {
					tr.writeAs(here, ino, row.content, row.facts).ok()
				}
				tr.wait(time.Hour)
				if !before {
					preview := step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_PreviewRule{
						PreviewRule: &storepb.PreviewRule{Rule: rule, Viewer: root},
					}}), t}.ok().GetLocks()
					require.Len(t, preview, 1)
					require.Equal(t, row.removed || anyFile, preview[0].GetRemoved(), "%s: %s", name, preview[0].GetOutcome())
					tr.rule(rule).ok()
				}
				tr.tick(0)
				require.Equal(t, row.removed || anyFile, tr.at(RootIno, "name") == 0, "%s, any file %v, set before %v", name, anyFile, before)
				requireConsistent(t, tr.ns)
			}
		}
	}
}

// TestDataThatItsCreatorLeftHasNoCreatorAnyMore: a program that empties it to write it again does not lose it.
func TestDataThatItsCreatorLeftHasNoCreatorAnyMore(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "x.lock", Holder: "creator"}).ok()
	ino := tr.as(here, 1, createOp(RootIno, "x.lock", true), processOf(1)).ok().GetAttr().GetIno()
	tr.writeAs(here, ino, strings.Repeat("x", lockfact.Short+1), nil).ok()
	tr.ended(here, processOf(1), tr.now)
	tr.restart()
	tr.writeAs(there, ino, "", nil).ok()
	tr.tick(time.Hour)
	require.NotZero(t, tr.at(RootIno, "x.lock"))
}
