package namespace

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// removedWhenStale makes facts those of a lock that lockfs removes.
func removedWhenStale(facts *storepb.Facts) *storepb.Facts {
	facts.OnStale = storepb.OnStale_REMOVE
	return facts
}

// TestStaleStrictlyAfterItsTime, with any command whatever: that is the one way in which time passes.
func TestStaleStrictlyAfterItsTime(t *testing.T) {
	for name, cmd := range map[string]*storepb.Command{
		"tick":                   {Op: opOf(&storepb.Tick{})},
		"nothing":                {},
		"of an unknown session":  {Session: 99, Seq: 1, Op: opOf(&storepb.Tick{})},
		"a refusal":              {Session: here, Seq: 100, Op: opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("no")})},
		"a retry":                {Session: here, Seq: 1, Op: createOp(RootIno, "lock", true)},
		"a cancellation":         {Session: here, Op: opOf(&storepb.Cancel{Seq: 99})},
		"a session":              {Session: 9, Op: opOf(&storepb.OpenSession{Host: "h", BootId: "b"})},
		"of a member, not to us": {Op: opOf(&storepb.RemoveMember{Id: "m"})},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			expires := tr.now + int64(time.Minute)
			tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", expires))
			tr.wait(time.Duration(expires-tr.now) - time.Second)
			tr.apply(cmd)
			require.Equal(t, expires, tr.now)
			tr.requireState("held", "lock")
			require.False(t, tr.ns.Due(expires))
			require.True(t, tr.ns.Due(expires+1))

			tr.wait(1 - time.Second)
			tr.apply(cmd)
			tr.requireState("stale", "lock")
			require.Equal(t, tr.now, tr.lock("lock").GetSince())
			require.Equal(t, "its time was over at 1970-01-01T01:01:02Z", tr.lock("lock").GetReason())
			require.False(t, tr.ns.Due(math.MaxInt64))
			requireConsistent(t, tr.ns)
		})
	}
}

func TestStaleLockIsKeptOrRemoved(t *testing.T) {
	tr := newDriver(t)
	expires := tr.now + int64(time.Minute)
	tr.take(here, "kept", factsFor(storepb.Format_TOWER, "x", expires))
	ino := tr.take(here, "removed", removedWhenStale(factsFor(storepb.Format_FORRST, "x", expires)))
	strange := factsFor(storepb.Format_FORRST, "y", expires)
	strange.OnStale = storepb.OnStale_NO_ON_STALE
	tr.take(here, "strange", strange)
	tr.tick(2 * time.Minute)
	tr.requireState("stale", "kept", "strange")
	tr.requireNone("removed")
	tr.write(here, ino, "heartbeat").is(storepb.Code_STALE)
	tr.restart()
	tr.requireState("stale", "kept", "strange")
}

// TestManyLocksExpireTogether: a batch with each command, and each of those removed is an orphan for a while.
func TestManyLocksExpireTogether(t *testing.T) {
	tr := newDriver(t)
	expires := tr.now + int64(24*time.Hour)
	const locks = expiryBatch + 10
	for i := range locks {
		tr.take(here, nameOf(i), removedWhenStale(factsFor(storepb.Format_FORRST, "x", expires)))
		tr.seqs[here] += 2
	}
	left := func() int { return len(tr.names()) }
	tr.wait(24 * time.Hour)
	require.True(t, tr.ns.Due(tr.now))
	tr.tick(0)
	require.Equal(t, locks-expiryBatch, left())
	require.True(t, tr.ns.Due(tr.now), "there is more to do")
	requireConsistent(t, tr.ns)
	tr.restart()
	tr.tick(0)
	require.Zero(t, left())
	require.False(t, tr.ns.Due(math.MaxInt64))
	tr.restart()
	tr.tick(orphanAge + time.Second)
	require.Zero(t, tr.ns.tree.orphans.byIno.Len())
	require.Equal(t, 1, tr.ns.Inodes())
	requireConsistent(t, tr.ns)
}

func TestRenewedLockIsHeldAgain(t *testing.T) {
	for name, renew := range map[string]func(tr *driver, facts *storepb.Facts) step{
		"in place":  func(tr *driver, facts *storepb.Facts) step { return tr.fill(here, RootIno, "lock", facts) },
		"by rename": func(tr *driver, facts *storepb.Facts) step { return tr.replace(here, "lock", facts) },
		"truncated": func(tr *driver, _ *storepb.Facts) step { return tr.fill(here, RootIno, "lock", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Minute)))
			token := tr.token("lock")
			tr.tick(2 * time.Minute)
			tr.requireState("stale", "lock")
			renew(tr, factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Minute))).ok()
			tr.requireState("held", "lock")
			require.Equal(t, token, tr.token("lock"))
			tr.tick(2 * time.Minute)
			if name != "truncated" {
				tr.requireState("stale", "lock")
			}
			requireConsistent(t, tr.ns)
		})
	}
}

// TestLateContentIsStaleAtOnce: a heartbeat that was long under way renews nothing.
func TestLateContentIsStaleAtOnce(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", factsFor(storepb.Format_TOWER, "x", tr.now-1))
	tr.requireState("stale", "lock")
	event := tr.lastEvent()
	tr.tick(0)
	tr.requireEvents(event, "lock_stale lock")
	tr.requireState("stale", "lock")
}

// TestStaleAfterCountsFromMtime for what is of no format: a touch is a heartbeat.
func TestStaleAfterCountsFromMtime(t *testing.T) {
	for name, renew := range map[string]func(tr *driver, ino uint64) *storepb.Op{
		"touch": func(_ *driver, ino uint64) *storepb.Op { return opOf(&storepb.SetAttr{Ino: ino, MtimeNow: true}) },
		"touch -d": func(tr *driver, ino uint64) *storepb.Op {
			at := tr.now
			return opOf(&storepb.SetAttr{Ino: ino, Mtime: &at})
		},
		"write": func(tr *driver, ino uint64) *storepb.Op {
			return opOf(&storepb.SetContent{Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte("beat")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.rule(&storepb.Rule{Pattern: "*.lock", StaleAfter: int64(time.Minute)}).ok()
			ino := tr.take(here, "a.lock", nil)
			tr.take(here, "other", nil)
			for range 3 {
				tr.tick(50 * time.Second)
				tr.requireState("held", "a.lock")
				tr.do(here, renew(tr, ino)).ok()
			}
			tr.tick(2 * time.Minute)
			tr.requireState("stale", "a.lock")
			require.Equal(t, "*.lock", tr.lock("a.lock").GetRule())
			tr.requireState("held", "other")
			tr.do(here, renew(tr, ino)).ok()
			tr.requireState("held", "a.lock")
			requireConsistent(t, tr.ns)
			tr.restart()
		})
	}
}

// TestTouchIntoThePast makes a lock stale under such a rule, as programs that test themselves do.
func TestTouchIntoThePast(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "*.lock", StaleAfter: int64(time.Minute), OnStale: "remove"}).ok()
	ino := tr.take(here, "a.lock", nil)
	past := int64(1)
	tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Mtime: &past})).ok()
	tr.requireState("stale", "a.lock")
	tr.tick(0)
	tr.requireNone("a.lock")
}

// TestDirectoryUnderStaleAfter: what comes and goes in it renews it, and it is not removed with its entries.
func TestDirectoryUnderStaleAfter(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "d.lock", StaleAfter: int64(time.Minute), OnStale: "remove"}).ok()
	dir := tr.mkdir(RootIno, "d.lock")
	tr.tick(50 * time.Second)
	tr.file(dir, "pid")
	tr.tick(50 * time.Second)
	tr.requireState("held", "d.lock")
	tr.tick(time.Hour)
	tr.requireState("stale", "d.lock")
	require.Equal(t, dir, tr.at(RootIno, "d.lock"), "it has an entry")
	tr.tick(time.Hour)
	require.False(t, tr.ns.Due(math.MaxInt64))
	tr.restart()
	tr.unlink(here, dir, "pid").ok()
	tr.requireState("held", "d.lock")
	tr.tick(time.Minute)
	tr.requireState("held", "d.lock")
	tr.tick(1)
	tr.requireNone("d.lock")
	requireConsistent(t, tr.ns)
}

// TestDirectoryOfUnknownAge: a time of 0 is no evidence until the next change.
func TestDirectoryOfUnknownAge(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "d", StaleAfter: int64(time.Minute)}).ok()
	dir := tr.mkdir(RootIno, "d")
	never := int64(0)
	tr.do(here, opOf(&storepb.SetAttr{Ino: dir, Mtime: &never})).ok()
	tr.tick(time.Hour)
	tr.requireState("held", "d")
	tr.file(dir, "f")
	requireConsistent(t, tr.ns)
	tr.tick(2 * time.Minute)
	tr.requireState("stale", "d")
}

func TestRulesJudgeAgain(t *testing.T) {
	tr := newDriver(t)
	minute := int64(time.Minute)
	tr.take(here, "a", nil)
	tr.take(here, "b", factsFor(storepb.Format_SEMAPHORE, "1", tr.now+minute))
	tr.tick(time.Hour)
	tr.requireState("held", "a")
	tr.requireState("stale", "b")

	tr.rule(&storepb.Rule{Pattern: "?", StaleAfter: 10 * minute}).ok()
	tr.requireState("stale", "a", "b") // "a" by the rule; "b", issued long ago, by the rule too
	tr.tick(0)
	require.False(t, tr.ns.Due(tr.now))
	tr.rule(&storepb.Rule{Pattern: "?", StaleAfter: math.MaxInt64}).ok()
	tr.requireState("held", "a", "b")
	tr.rule(&storepb.Rule{Pattern: "?", StaleAfter: 10 * minute}).ok()
	tr.deleteRule("?").ok()
	tr.requireState("held", "a")
	tr.requireState("stale", "b")
	requireConsistent(t, tr.ns)
}

// TestRuleRemovesWhatIsStaleAlready: somebody finds stale locks lying about and says that they may go.
func TestRuleRemovesWhatIsStaleAlready(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "by-time", factsFor(storepb.Format_SEMAPHORE, "1", tr.now+1))
	tr.take(here, "by-process", keptFacts(processOf(1)))
	tr.take(here, "live", keptFacts(processOf(2)))
	tr.gone(here, processOf(1)).ok()
	tr.tick(time.Hour)
	tr.requireState("stale", "by-time", "by-process")
	tr.rule(&storepb.Rule{Pattern: "**", OnStale: "remove"}).ok()
	requireConsistent(t, tr.ns)
	require.True(t, tr.ns.Due(tr.now))
	tr.restart()
	event := tr.lastEvent()
	tr.tick(0)
	require.Equal(t, []string{"live"}, tr.names())
	tr.requireEvents(event, "lock_removed by-process", "lock_removed by-time")
}

// TestRuleOfAPathIsForWhatIsThereAlready, in any directory.
func TestRuleOfAPathIsForWhatIsThereAlready(t *testing.T) {
	tr := newDriver(t)
	bin, etc := tr.mkdir(RootIno, "bin"), tr.mkdir(RootIno, "etc")
	dirs := []uint64{RootIno, bin, etc}
	for _, dir := range dirs {
		tr.do(here, createOp(dir, "a", true)).ok()
		tr.do(here, createOp(dir, "b", true)).ok()
	}
	tr.tick(time.Hour)
	states := func() (states []string) {
		for _, dir := range dirs {
			states = append(states, tr.lockIn(dir, "a").GetState()+" "+tr.lockIn(dir, "b").GetState())
		}
		return states
	}
	require.False(t, tr.ns.Due(tr.now))
	tr.rule(&storepb.Rule{Pattern: "bin/a", StaleAfter: int64(time.Minute)}).ok()
	require.True(t, tr.ns.Due(tr.now))
	tr.tick(0)
	require.Equal(t, []string{"held held", "stale held", "held held"}, states())
	tr.rule(&storepb.Rule{Pattern: "etc/*", StaleAfter: int64(time.Minute)}).ok()
	tr.deleteRule("bin/a").ok()
	tr.tick(0)
	require.Equal(t, []string{"held held", "held held", "stale stale"}, states())
	requireConsistent(t, tr.ns)
}

// TestRuleOfAFormatIsCountedAtOnce, for locks that are there already.
func TestRuleOfAFormatIsCountedAtOnce(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "a", towerFacts("holder"))
	require.Equal(t, map[lockKind]int{{format: lockfact.Tower}: 1}, tr.ns.tree.lockCounts.files)
	tr.rule(&storepb.Rule{Pattern: "a", Format: "none"}).ok()
	requireLocksCounted(t, tr.ns)
	require.Equal(t, map[lockKind]int{{format: lockfact.None}: 1}, tr.ns.tree.lockCounts.files)
}

// TestStaleLockMovesToWhereItIsRemoved at once, and the other way round it stays.
func TestStaleLockMovesToWhereItIsRemoved(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "bin/*", OnStale: "remove"}).ok()
	bin := tr.mkdir(RootIno, "bin")
	for _, name := range []string{"a", "b"} {
		tr.take(here, name, factsFor(storepb.Format_SEMAPHORE, name, tr.now+1))
	}
	tr.tick(time.Hour)
	tr.rename(RootIno, "a", bin, "a").ok()
	require.Equal(t, "stale", tr.lockIn(bin, "a").GetState())
	tr.link(tr.at(RootIno, "b"), bin, "b").ok()
	require.Equal(t, "stale", tr.lockIn(bin, "b").GetState())
	tr.tick(0)
	require.Empty(t, listing(tr.ns, bin, 0)[2:])
	tr.requireState("stale", "b")
	requireConsistent(t, tr.ns)
}

func TestRuleWithTheLongestPatternCounts(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir")
	tr.file(dir, "a.lock")
	for _, row := range []struct{ add, counts string }{
		{"**", "**"}, {"*.lock", "*.lock"}, {"*", "*.lock"}, {"dir/a.*", "dir/a.*"}, {"dir/?.lock", "dir/?.lock"},
		{"b.lock-that-is-longer", "dir/?.lock"}, {"dir/*.lock", "dir/?.lock"},
	} {
		tr.rule(&storepb.Rule{Pattern: row.add, Guard: "host"}).ok()
		require.Equal(t, row.counts, tr.lockIn(dir, "a.lock").GetRule())
	}
	rules := step{tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListRules{}}), t}.ok().GetRules()
	require.Len(t, rules, 7)
	tr.restart()
	tr.deleteRule("dir/?.lock").ok()
	require.Equal(t, "dir/*.lock", tr.lockIn(dir, "a.lock").GetRule())
	tr.deleteRule("never set").ok()
}

func TestRulesAreChecked(t *testing.T) {
	tr := newDriver(t)
	for name, rule := range map[string]*storepb.Rule{
		"none":         nil,
		"no pattern":   {StaleAfter: 1},
		"bad pattern":  {Pattern: "["},
		"format":       {Pattern: "*", Format: "json"},
		"stale-after":  {Pattern: "*", StaleAfter: -1},
		"on-stale":     {Pattern: "*", OnStale: "burn"},
		"guard":        {Pattern: "*", Guard: "owner"},
		"host-timeout": {Pattern: "*", HostTimeout: -1},
	} {
		require.NotEmpty(t, tr.rule(rule).is(storepb.Code_INVALID).GetMessage(), name)
	}
	for i := range MaxRules {
		tr.rule(&storepb.Rule{Pattern: nameOf(i)}).ok()
	}
	tr.rule(&storepb.Rule{Pattern: "more"}).is(storepb.Code_NO_SPACE)
	tr.rule(&storepb.Rule{Pattern: nameOf(0), StaleAfter: 1}).ok()
	tr.restart()
}

// TestMovedDirectoryIsJudgedByPath, with all that is below it.
func TestMovedDirectoryIsJudgedByPath(t *testing.T) {
	for name, move := range map[string]func(tr *driver, name, newName string){
		"rename":   func(tr *driver, name, newName string) { tr.rename(RootIno, name, RootIno, newName).ok() },
		"exchange": func(tr *driver, name, newName string) { tr.exchange(RootIno, name, RootIno, newName).ok() },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.rule(&storepb.Rule{Pattern: "watched/**/*.lock", StaleAfter: int64(time.Minute)}).ok()
			deep := tr.mkdir(tr.mkdir(RootIno, "free"), "deep")
			tr.mkdir(RootIno, "watched")
			tr.file(deep, "a.lock")
			tr.tick(time.Hour)
			require.Equal(t, "held", tr.lockIn(deep, "a.lock").GetState())
			move(tr, "free", "watched")
			require.Equal(t, "stale", tr.lockIn(deep, "a.lock").GetState())
			requireConsistent(t, tr.ns)
			tr.tick(0)
			require.Equal(t, "stale", tr.lockIn(deep, "a.lock").GetState())
			move(tr, "watched", "free")
			require.Equal(t, "held", tr.lockIn(deep, "a.lock").GetState())
			requireConsistent(t, tr.ns)
		})
	}
}

// TestHardLinksUnderTwoRules: each name is a lock of its own.
func TestHardLinksUnderTwoRules(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "short", StaleAfter: int64(time.Minute), OnStale: "remove"}).ok()
	tr.rule(&storepb.Rule{Pattern: "long", StaleAfter: int64(time.Hour)}).ok()
	ino := tr.take(here, "short", nil)
	tr.link(ino, RootIno, "long").ok()
	tr.link(ino, RootIno, "free").ok()
	tr.tick(2 * time.Minute)
	tr.requireNone("short")
	tr.requireState("held", "long", "free")
	require.EqualValues(t, 2, tr.attr(ino).GetNlink())
	tr.tick(2 * time.Hour)
	tr.requireState("stale", "long")
	tr.requireState("held", "free")
	tr.link(ino, RootIno, "short").ok()
	tr.requireState("stale", "short")
	require.True(t, tr.ns.Due(tr.now))
	tr.tick(0)
	tr.requireNone("short")
	requireConsistent(t, tr.ns)
}

// TestFormatOfARule: a valid lock of another format is none, so nothing makes it stale.
func TestFormatOfARule(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "a", factsFor(storepb.Format_TOWER, "x", tr.now+1))
	tr.rule(&storepb.Rule{Pattern: "a", Format: "semaphore", StaleAfter: 1}).ok()
	tr.tick(time.Hour)
	tr.requireState("held", "a")
	facts := tr.lock("a").GetFacts()
	requireSame(t, &storepb.Facts{Format: storepb.Format_NONE, Host: "here", Guard: storepb.Guard_ANYONE, OnStale: storepb.OnStale_KEEP}, facts)
	tr.deleteRule("a").ok()
	tr.requireState("stale", "a")
}
