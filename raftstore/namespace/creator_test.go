package namespace

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// byCreator has a rule for all names under which their makers hold them.
func byCreator(tb testing.TB, onStale string) *driver {
	tr := newDriver(tb)
	tr.rule(&storepb.Rule{Pattern: "**", Holder: "creator", OnStale: onStale}).ok()
	return tr
}

// as does an operation for a process, the first of the line, with family of them in its process group.
func (tr *driver) as(session uint64, family uint32, op *storepb.Op, line ...*storepb.Process) step {
	cmd := tr.next(session, op)
	cmd.Caller.Lineage, cmd.Caller.Family = line, family
	return tr.apply(cmd)
}

// ended tells of the end of a process at a time.
func (tr *driver) ended(session uint64, process *storepb.Process, at int64) {
	tr.tb.Helper()
	tr.do(session, opOf(&storepb.ProcessGone{Processes: []*storepb.Process{process}, Ended: []int64{at}})).ok()
}

// TestImpatientRuleWithHeirsRemovesOnce: a name that is known under several processes is one name.
func TestImpatientRuleWithHeirsRemovesOnce(t *testing.T) {
	for _, onStale := range []string{"keep", "remove"} {
		t.Run(onStale, func(t *testing.T) {
			tr := newDriver(t)
			tr.rule(&storepb.Rule{Pattern: "**", Holder: "creator", HostTimeout: 1, OnStale: onStale}).ok()
			ino := tr.as(here, 3, createOp(RootIno, "lock", true), processOf(3), processOf(2), processOf(1)).ok().GetAttr().GetIno()
			tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(4))).ok()
			tr.as(here, 3, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("other")}), processOf(3), processOf(2)).ok()
			tr.giveUp(here)
			event := tr.lastEvent()
			tr.tick(time.Hour)
			requireConsistent(t, tr.ns)
			want := []string{"lock_stale lock", "lock_stale other"}
			if onStale == "remove" {
				tr.requireNone("lock", "other")
				want = []string{"lock_stale lock", "lock_removed lock", "lock_stale other", "lock_removed other"}
			}
			tr.requireEvents(event, want...)
			require.False(t, tr.ns.Due(tr.ns.time))
		})
	}
}

// TestSilenceIsThatOfTheHolder, not of the host whose process is in a file of which another one made a name, nor of the host that
// made it where the process in it counts.
func TestSilenceIsThatOfTheHolder(t *testing.T) {
	for _, host := range []uint64{here, there} {
		tr := newDriver(t)
		tr.rule(&storepb.Rule{Pattern: "lock", Holder: "creator", HostTimeout: int64(2 * time.Hour)}).ok()
		ino := tr.take(here, "tmp", pidFacts(storepb.Format_PID, processOf(1)))
		tr.as(there, 1, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("lock")}), processOf(9)).ok()
		if host == there {
			tr.rule(&storepb.Rule{Pattern: "lock", HostTimeout: int64(2 * time.Hour)}).ok()
		}
		tr.giveUp(host)
		tr.tick(3 * time.Hour)
		tr.requireState("held", "lock")
		tr.giveUp(here + there - host)
		tr.tick(time.Hour)
		tr.requireState("unreachable", "lock")
		tr.tick(2 * time.Hour)
		tr.requireNone("lock")
	}
}

// TestStrangeLineages make no maker that could not be restored.
func TestStrangeLineages(t *testing.T) {
	long := &storepb.Process{Pid: 1, BootId: strings.Repeat("b", MaxName+1)}
	wide := &storepb.Process{Pid: 1, BootId: "boot", SeenFrom: make([]uint64, maxSeenFrom+1)}
	var endless []*storepb.Process
	for pid := range uint32(100_000) {
		endless = append(endless, &storepb.Process{Pid: pid + 1, BootId: "boot", SeenFrom: make([]uint64, maxSeenFrom)})
	}
	for name, row := range map[string]struct {
		line []*storepb.Process
		made int // how many could have made it
	}{
		"nobody":             {[]*storepb.Process{nil}, 0},
		"of no number":       {[]*storepb.Process{{BootId: "boot"}}, 0},
		"a long boot":        {[]*storepb.Process{long}, 0},
		"many namespaces":    {[]*storepb.Process{wide}, 0},
		"a hole":             {[]*storepb.Process{processOf(1), nil, processOf(3)}, 1},
		"the same":           {[]*storepb.Process{processOf(1), processOf(1)}, 1},
		"a long boot above":  {[]*storepb.Process{processOf(1), processOf(2), long}, 2},
		"an endless lineage": {endless, 1 + maxHeirs},
	} {
		t.Run(name, func(t *testing.T) {
			tr := byCreator(t, "remove")
			tr.as(here, math.MaxUint32, createOp(RootIno, "lock", true), row.line...).ok()
			require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), row.made)
			requireConsistent(t, tr.ns)
			tr.restart()
			for range row.made {
				tr.tick(time.Hour)
				tr.gone(here, tr.ns.Query(listProcesses("here")).GetProcesses()...).ok()
			}
			require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses())
		})
	}
}

// makings are the ways to come by the name "lock", of what is there under "tmp" if anything.
var makings = map[string]*storepb.Op{
	"create":    createOp(RootIno, "lock", true),
	"open":      createOp(RootIno, "lock", false),
	"filled":    opOf(filledOp("lock", towerFacts("x"))),
	"mkdir":     opOf(&storepb.Create{Parent: RootIno, Name: []byte("lock"), Mode: someDir}),
	"symlink":   opOf(&storepb.Create{Parent: RootIno, Name: []byte("lock"), Mode: syscall.S_IFLNK | 0o777, Target: []byte("x")}),
	"link":      opOf(&storepb.Link{Ino: 2, Parent: RootIno, Name: []byte("lock")}),
	"rename":    renameOp(RootIno, "tmp", RootIno, "lock"),
	"noreplace": noReplace(RootIno, "tmp", RootIno, "lock"),
}

// eachMaking has a file "tmp" of nobody, and a rule for "lock" alone.
func eachMaking(t *testing.T, onStale string, test func(t *testing.T, tr *driver, making *storepb.Op)) {
	for name, making := range makings {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.rule(&storepb.Rule{Pattern: "lock", Holder: "creator", OnStale: onStale, AnyFile: onStale != "keep"}).ok()
			tr.do(here, createOp(RootIno, "tmp", false)).ok()
			test(t, tr, proto.Clone(making).(*storepb.Op))
			requireConsistent(t, tr.ns)
		})
	}
}

// TestMakerIsTheHolder of whatever it made, and what it made goes with it.
func TestMakerIsTheHolder(t *testing.T) {
	eachMaking(t, "", func(t *testing.T, tr *driver, making *storepb.Op) {
		names, next, event := tr.names(), tr.ns.tree.nextIno, tr.lastEvent()
		requireSame(t, &storepb.Result{Code: storepb.Code_NEED_LINEAGE}, tr.do(here, making).Result)
		require.Equal(t, names, tr.names())
		require.Equal(t, next, tr.ns.tree.nextIno)
		tr.requireEvents(event)

		tr.as(here, 1, making, processOf(1), processOf(9)).ok()
		tr.wait(time.Minute)
		lock := tr.lock("lock")
		require.True(t, lock.GetByCreator())
		require.Equal(t, "process 1", lock.GetFacts().GetHolder())
		require.Equal(t, "here", lock.GetFacts().GetHost())
		require.Contains(t, lock.GetBecause(), "the rule lock")
		tr.restart()
		tr.requireState("held", "lock")
		require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), 1)
		isDir := lock.GetAttr().GetMode()&syscall.S_IFMT == syscall.S_IFDIR
		tr.requireRefused(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock"), Directory: isDir}), storepb.Code_BUSY)
		tr.gone(there, processOf(1)).ok()
		tr.requireState("held", "lock")
		tr.ended(here, processOf(1), tr.now)
		tr.requireNone("lock")
	})
}

// TestMakerThatEndsAtOnceHasHeirs: the nearest one that lives, of its process group alone.
func TestMakerThatEndsAtOnceHasHeirs(t *testing.T) {
	eachMaking(t, "keep", func(t *testing.T, tr *driver, making *storepb.Op) {
		tr.as(here, 3, making, processOf(4), processOf(3), processOf(2), processOf(1)).ok()
		made := tr.now
		tr.ended(here, processOf(4), made+int64(atOnceLimit))
		require.Equal(t, "process 3", tr.lock("lock").GetFacts().GetHolder())
		tr.restart()
		tr.gone(here, processOf(3)).ok() // nobody knows when
		tr.requireState("held", "lock")
		require.Equal(t, "process 2", tr.lock("lock").GetFacts().GetHolder())
		tr.ended(here, processOf(1), made)
		tr.requireState("held", "lock")
		tr.gone(here, processOf(2)).ok()
		tr.requireState("stale", "lock")
		require.Equal(t, "its process 2 on here was ended by signal 9", tr.lock("lock").GetReason())
		tr.restart()
		tr.requireState("stale", "lock")
	})
}

// TestHeirThatIsGoneInheritsNothing.
func TestHeirThatIsGoneInheritsNothing(t *testing.T) {
	eachMaking(t, "", func(t *testing.T, tr *driver, making *storepb.Op) {
		tr.as(here, 2, making, processOf(2), processOf(1)).ok()
		tr.gone(here, processOf(1)).ok()
		tr.requireState("held", "lock")
		tr.restart()
		tr.gone(here, processOf(2)).ok()
		tr.requireNone("lock")
	})
}

// TestMakerThatLivedForLongHasNoHeirs: it held the lock itself.
func TestMakerThatLivedForLongHasNoHeirs(t *testing.T) {
	eachMaking(t, "", func(t *testing.T, tr *driver, making *storepb.Op) {
		tr.as(here, 2, making, processOf(2), processOf(1)).ok()
		made := tr.now
		tr.restart()
		tr.ended(here, processOf(2), made+int64(atOnceLimit)+1)
		tr.requireNone("lock")
	})
}

// TestHeirsGoWithTheirHost, all at once.
func TestHeirsGoWithTheirHost(t *testing.T) {
	for name, end := range map[string]func(tr *driver){
		"boot":   func(tr *driver) { tr.open(3, "here", "later").ok() },
		"forget": func(tr *driver) { tr.forget("here").ok() },
	} {
		t.Run(name, func(t *testing.T) {
			tr := byCreator(t, "remove")
			tr.as(here, 3, createOp(RootIno, "lock", true), processOf(3), processOf(2), processOf(1)).ok()
			tr.giveUp(here)
			tr.requireState("unreachable", "lock")
			end(tr)
			tr.requireNone("lock")
		})
	}
}

// TestContentDoesNotMatterWhereTheMakerHolds: neither its process nor its time ends the lock, nor does it renew it.
func TestContentDoesNotMatterWhereTheMakerHolds(t *testing.T) {
	for _, facts := range []func(tr *driver) *storepb.Facts{
		func(*driver) *storepb.Facts { return pidFacts(storepb.Format_PID, processOf(2)) },
		func(tr *driver) *storepb.Facts { return factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Minute)) },
		func(*driver) *storepb.Facts { return nil },
		func(*driver) *storepb.Facts { return &storepb.Facts{Evidence: []string{"names its host"}} },
	} {
		tr := byCreator(t, "keep")
		tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok()
		tr.fill(here, RootIno, "lock", facts(tr)).ok()
		tr.gone(here, processOf(2)).ok()
		tr.tick(time.Hour)
		tr.requireState("held", "lock")
		tr.gone(here, processOf(1)).ok()
		tr.requireState("stale", "lock")
		tr.fill(there, RootIno, "lock", facts(tr)).ok()
		tr.tick(0)
		tr.requireState("stale", "lock")
	}
}

// TestStaleByItsMakerNoLongerThanThat is its holder: a rule that goes, or a name that another one takes, makes it a live lock.
func TestStaleByItsMakerNoLongerThanThat(t *testing.T) {
	tr := byCreator(t, "keep")
	tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok()
	tr.fill(here, RootIno, "lock", pidFacts(storepb.Format_PID, processOf(2))).ok()
	tr.gone(here, processOf(1)).ok()
	tr.requireState("stale", "lock")
	tr.restart()
	for _, away := range []*storepb.Op{
		renameOp(RootIno, "lock", RootIno, "moved"), noReplace(RootIno, "moved", RootIno, "again"),
	} {
		tr.as(here, 1, away, processOf(3)).ok()
	}
	tr.as(here, 1, createOp(RootIno, "lock", true), processOf(3)).ok()
	tr.as(here, 1, renameOp(RootIno, "again", RootIno, "lock"), processOf(3)).ok()
	tr.requireState("held", "lock")
	tr.gone(here, processOf(3)).ok()
	tr.requireState("stale", "lock")
	tr.restart()
	tr.deleteRule("**").ok()
	tr.requireState("held", "lock")
	tr.requireRefused(there, opOf(unlinkOp("lock")), storepb.Code_BUSY)
}

// TestStaleByItsContentNotByItsMaker: with the rule, the maker is the holder, and lives.
func TestStaleByItsContentNotByItsMaker(t *testing.T) {
	tr := byCreator(t, "keep")
	tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok()
	tr.fill(here, RootIno, "lock", keptFacts(processOf(2))).ok()
	tr.deleteRule("**").ok()
	tr.gone(here, processOf(2)).ok()
	tr.requireState("stale", "lock")
	tr.rule(&storepb.Rule{Pattern: "*", Holder: "creator", OnStale: "keep"}).ok()
	tr.requireState("held", "lock")
	tr.tick(0)
	tr.requireState("held", "lock")
	tr.deleteRule("*").ok()
	tr.requireState("stale", "lock")
}

// TestRenameTakenBackGivesTheNameItsMakerBack, and it is as much of a lock as before.
func TestRenameTakenBackGivesTheNameItsMakerBack(t *testing.T) {
	tr := byCreator(t, "remove")
	tr.as(here, 1, createOp(RootIno, "lock", true), processOf(1)).ok()
	cmd := tr.next(here, noReplace(RootIno, "lock", RootIno, "away"))
	cmd.Caller.Lineage = []*storepb.Process{processOf(2)}
	tr.apply(cmd).ok()
	tr.restart()
	tr.cancel(cmd).ok()
	require.Equal(t, "process 1", tr.lock("lock").GetFacts().GetHolder())
	tr.gone(here, processOf(2)).ok()
	tr.requireState("held", "lock")
	tr.gone(here, processOf(1)).ok()
	tr.requireNone("lock")

	for _, exclusive := range []bool{true, false} {
		tr := newDriver(t)
		tr.do(here, createOp(RootIno, "lock", exclusive)).ok()
		cmd := tr.next(here, noReplace(RootIno, "lock", RootIno, "away"))
		tr.apply(cmd).ok()
		tr.restart()
		tr.cancel(cmd).ok()
		require.Equal(t, exclusive, tr.lock("lock").GetBecause() != "")
	}
}
