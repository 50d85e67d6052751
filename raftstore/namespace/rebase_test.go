package namespace

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/trust"
)

// TestAStateThatBeginsAnewGivesOutNothingTwice: what it gives out is above all that the lost cluster can have given out.
func TestAStateThatBeginsAnewGivesOutNothingTwice(t *testing.T) {
	tr := newDriver(t)
	held := tr.take(here, "held", pidFacts(storepb.Format_PID, processOf(7)))
	tr.do(0, opOf(&storepb.SetMember{Member: &storepb.Member{Id: "a-1", Name: "a"}})).ok()
	old, token := restored(t, snapshotBytes(t, tr.ns.Snapshot())), tr.token("held")
	for range 100 { // lost
		tr.take(here, "later", nil)
		tr.unlink(here, RootIno, "later").ok()
	}
	tr.take(here, "later", nil)
	lostToken, lostIno, lostEvent, lostIndex := tr.token("later"), tr.ns.tree.nextIno, tr.ns.events.last, tr.ns.Index()

	tr.ns = old
	tr.do(0, opOf(&storepb.SetCluster{Id: "lost"})).ok()
	lastHash := tr.eventsSince(tr.lastEvent() - 1)[0].GetHash()
	require.NoError(t, tr.ns.Rebase(time.Unix(0, tr.now), RebaseOptions{Cluster: "another"}))
	requireConsistent(t, tr.ns)
	begun := tr.eventsSince(lostEvent)[0]
	require.Equal(t, eventClusterBegun, begun.GetEvent(), "before anything else is told")
	require.Equal(t, "another", begun.GetCluster())
	require.Empty(t, begun.GetBefore(), "a chain of its own")
	require.Contains(t, begun.GetReason(), fmt.Sprintf("the lost cluster lost; the last known event of that is %x", lastHash))
	require.Greater(t, tr.ns.Index(), lostIndex+1<<30, "an hour of microseconds")
	require.Empty(t, tr.ns.Members())
	require.Zero(t, tr.ns.Sessions())
	for _, kept := range tr.ns.Events(0, 1000) {
		if kept.GetEvent() == eventSessionEnded {
			require.Greater(t, kept.GetNumber(), lostEvent)
		}
	}
	require.Equal(t, token, tr.token("held"), "what it has keeps its token")
	tr.requireState("unreachable", "held")
	require.EqualValues(t, held, tr.at(RootIno, "held"))

	tr.index = uint64(tr.ns.Index())
	tr.do(here, createOp(RootIno, "x", true)).is(storepb.Code_SESSION_UNKNOWN)
	tr.do(99, createOp(RootIno, "x", true)).is(storepb.Code_SESSION_FORGOTTEN)
	tr.open(3, "here", "boot").ok()
	tr.requireState("held", "held")
	require.Greater(t, tr.take(3, "later", nil), uint64(lostIno))
	require.Greater(t, tr.token("later"), lostToken)

	first := tr.ns.Index()
	again := restored(t, snapshotBytes(t, old.Snapshot()))
	require.NoError(t, again.Rebase(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), RebaseOptions{Cluster: "another"}))
	require.Greater(t, again.Index(), first, "the same state is taken once more, later")
}

// TestLocksOfAStateThatBeginsAnewWaitForTheLockDelay: programs may rely on them, and their mounts find out that they are lost.
func TestLocksOfAStateThatBeginsAnewWaitForTheLockDelay(t *testing.T) {
	tr := newLockTree(t)
	tr.flock(anna, exclusive).ok()
	tr.flockWait(bert, exclusive).is(storepb.Code_WAITING)
	tr.wait(time.Hour)
	require.NoError(t, tr.ns.Rebase(time.Unix(0, tr.now), RebaseOptions{Cluster: "another"}))
	requireConsistent(t, tr.ns)
	tr.index = uint64(tr.ns.Index())
	const mine = 17
	tr.open(mine, "here", "boot").ok()
	take := func() step {
		return tr.do(mine, opOf(&storepb.TakeLock{Ino: tr.ino, Kind: storepb.LockKind_FLOCK, Type: exclusive, Owner: 1, Session: mine}))
	}
	take().is(storepb.Code_WOULD_BLOCK)
	tr.wait(DefaultLockDelay)
	take().ok()
}

func TestAnyStateCanBeginAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = true
		steps := 1 + g.below(60)
		for index := range steps {
			ns.Apply(ids.Index(index+1), g.next())
		}
		require.NoError(t, ns.Rebase(time.Unix(0, g.now).Add(time.Hour), RebaseOptions{Cluster: "another"}))
		requireConsistent(t, ns)
		require.Equal(t, ns.Snapshot().Hash(), restored(t, snapshotBytes(t, ns.Snapshot())).Snapshot().Hash())
	})
}

// TestNumbersRiseThroughEveryRestore restores the states of one history in any order, again and again, while commands go on in between.
// The clock advances by a microsecond for each command at least. Indexes, inode and event numbers rise above all that were ever given.
func TestNumbersRiseThroughEveryRestore(t *testing.T) {
	type numbers struct {
		index ids.Index
		ino   ids.Inode
		event uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = true
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var saved [][]byte
		given := numbers{}
		for range 1 + g.below(120) {
			switch {
			case g.often(10):
				saved = append(saved, snapshotBytes(t, ns.Snapshot()))
			case g.often(20) && len(saved) > 0:
				ns = restored(t, saved[g.below(len(saved))])
				clock = clock.Add(time.Microsecond)
				require.NoError(t, ns.Rebase(clock, RebaseOptions{Cluster: "another"}))
				first := uint64(clock.UnixMicro())
				require.Greater(t, first, uint64(given.index))
				require.Greater(t, first, uint64(given.ino))
				require.Greater(t, first, given.event)
				require.Greater(t, uint64(ns.Index()), first)
				require.GreaterOrEqual(t, uint64(ns.tree.nextIno), first)
				require.Greater(t, ns.events.last, first)
				clock = clock.Add(time.Duration(max(uint64(ns.Index()), ns.events.last)-first) * time.Microsecond)
				g.ns, g.now = ns, max(g.now, ns.time)
			default:
				before := ns.events.last
				ns.Apply(ns.Index()+1, g.next())
				clock = clock.Add(time.Duration(max(1, ns.events.last-before)) * time.Microsecond)
			}
			given.index, given.ino = max(given.index, ns.Index()), max(given.ino, ns.tree.nextIno-1)
			given.event = max(given.event, ns.events.last)
		}
	})
}

// TestFirstNumbersDependOnTheClockAlone: for any two states of one history and any two times, the later restore is above the earlier one,
// with room for the commands that were done since.
func TestFirstNumbersDependOnTheClockAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(1_700_000_000_000_000, 4_000_000_000_000_000).Draw(t, "first time")
		later := first + rapid.Int64Range(1, 1<<40).Draw(t, "microseconds until the second time")
		commands := rapid.Int64Range(0, later-first-1).Draw(t, "commands between them")
		one, two := rapid.Int64Range(1, first-1).Draw(t, "one state"), rapid.Int64Range(1, first-1).Draw(t, "the other state")
		before, err := firstNumber(time.UnixMicro(first), uint64(two), false)
		require.NoError(t, err)
		after, err := firstNumber(time.UnixMicro(later), uint64(one), false)
		require.NoError(t, err)
		require.Less(t, before+uint64(commands), after)
		require.Less(t, after, uint64(maxNumber), "every JSON reader is exact")
	})
}

// TestAClockBehindTheNumbersIsRefused, and leaves the state as it was. With PastClock the numbers are above those of the state, and rise with the clock.
func TestAClockBehindTheNumbersIsRefused(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ns := New()
	require.NoError(t, ns.Rebase(now.AddDate(70, 0, 0), RebaseOptions{Cluster: "another"}))
	last, hash := ns.Index(), ns.Snapshot().Hash()
	require.ErrorIs(t, ns.Rebase(now, RebaseOptions{Cluster: "third"}), ErrClockBehind)
	require.Equal(t, hash, ns.Snapshot().Hash())
	state := snapshotBytes(t, ns.Snapshot())
	for hours := range 100 {
		ns := restored(t, state)
		require.NoError(t, ns.Rebase(now.Add(time.Duration(hours)*time.Hour), RebaseOptions{Cluster: "third", PastClock: true}))
		require.Greater(t, ns.Index(), last)
		require.Less(t, uint64(ns.Index()), uint64(maxNumber))
		last = ns.Index()
	}
	ns = New()
	require.ErrorContains(t, ns.Rebase(time.Unix(-1, 0), RebaseOptions{Cluster: "another"}), "before 1970")
	require.ErrorContains(t, ns.Rebase(now.AddDate(300, 0, 0), RebaseOptions{Cluster: "another"}), "leave no room")
}

func TestNumbersThatNoStateEverHadAreRefused(t *testing.T) {
	for _, set := range []func(*Namespace){
		func(ns *Namespace) { ns.index = math.MaxInt64 },
		func(ns *Namespace) { ns.tree.nextIno = math.MaxUint64 },
		func(ns *Namespace) { ns.events.last = math.MaxUint64 - 5 },
	} {
		ns := New()
		set(ns)
		require.ErrorIs(t, ns.Rebase(time.Now(), RebaseOptions{Cluster: "another"}), ErrClockBehind)
		require.ErrorContains(t, ns.Rebase(time.Now(), RebaseOptions{Cluster: "another", PastClock: true}), "leave no room")
	}
}

// TestWhoWasOutOfServiceCanGoOnAnew: there is nobody any more whose state differs from his.
func TestWhoWasOutOfServiceCanGoOnAnew(t *testing.T) {
	tr := newDriver(t)
	for _, kind := range []string{AlarmStateDiffers, AlarmStateUndecided, "another"} {
		tr.do(0, opOf(&storepb.RaiseAlarm{Alarm: &storepb.Alarm{Kind: kind, Node: "survivor"}})).ok()
	}
	require.NotNil(t, tr.ns.Distrusted("survivor"))
	require.NoError(t, tr.ns.Rebase(time.Unix(0, tr.now), RebaseOptions{Cluster: "another"}))
	require.Nil(t, tr.ns.Distrusted("survivor"))
	require.Len(t, tr.ns.Alarms(), 1)
	requireConsistent(t, tr.ns)
}

// TestServersOfALostClusterAreRevoked, so that none comes back with what it has on its disk. Who goes on is let in, and so are clients.
func TestServersOfALostClusterAreRevoked(t *testing.T) {
	begun := func(t *testing.T, anew RebaseOptions) (tr *driver, revoked []string) {
		tr = newDriver(t)
		tr.trust()
		tr.admin(opOf(tokenFor("servers", storepb.Role_SERVER, math.MaxInt64))).ok()
		for _, name := range []string{"survivor", "lost"} {
			tr.admin(opOf(hostFor(name, storepb.Role_SERVER, "key of "+name, "servers"))).ok()
		}
		last := tr.lastEvent()
		anew.Cluster = "another"
		require.NoError(t, tr.ns.Rebase(time.Unix(0, tr.now), anew))
		for _, e := range tr.eventsSince(last) {
			if e.GetEvent() == "host_revoked" {
				revoked = append(revoked, e.GetHost())
			}
		}
		return tr, revoked
	}
	t.Run("with its hosts", func(t *testing.T) {
		tr, revoked := begun(t, RebaseOptions{Survivor: "survivor"})
		require.Equal(t, []string{"lost"}, revoked)
		require.ErrorIs(t, tr.ns.Admitted("lost", storepb.Role_SERVER, sumOf("key of lost")), trust.ErrRevoked)
		require.NoError(t, tr.ns.Admitted("survivor", storepb.Role_SERVER, sumOf("key of survivor")))
		require.NoError(t, tr.ns.Admitted("in", storepb.Role_CLIENT, sumOf("key")))
	})
	t.Run("without them", func(t *testing.T) {
		_, revoked := begun(t, RebaseOptions{ForgetHosts: true})
		require.Empty(t, revoked)
	})
}
