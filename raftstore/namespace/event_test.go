package namespace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// TestEventsOfALockedDay: every kind, in the order in which things happened.
func TestEventsOfALockedDay(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "short", StaleAfter: int64(time.Minute), OnStale: "remove"}).ok()

	tr.take(here, "a", nil)
	tr.fill(here, RootIno, "a", factsFor(storepb.Format_SWARM, "x", 0)).ok()
	tr.fill(here, RootIno, "a", factsFor(storepb.Format_SWARM, "x", 0)).ok() // a heartbeat is none
	tr.fill(there, RootIno, "a", factsFor(storepb.Format_SWARM, "y", 0)).ok()
	tr.do(there, opOf(&storepb.Unlink{
		Parent: RootIno, Name: []byte("a"), Observations: []*storepb.Observation{{Parent: RootIno, Name: []byte("a"), Token: 1}},
	})).is(storepb.Code_NOT_FOUND)
	tr.unlink(there, RootIno, "a").ok()
	tr.take(here, "short", nil)
	tr.take(here, "p", pidFacts(storepb.Format_PID, processOf(1)))
	tr.tick(2 * time.Minute)
	tr.giveUp(here)
	tr.open(3, "here", "boot").ok()
	tr.giveUp(3)
	tr.forget("here").ok()

	tr.requireEvents(0,
		"rule_set ", "lock_acquired a", "lock_stolen a", "lock_acquired a", "removal_refused a", "lock_released a",
		"lock_acquired short", "lock_acquired p", "lock_stale short", "lock_removed short",
		"session_ended ", "host_unreachable ", "host_back ", "session_ended ", "host_unreachable ",
		"host_forgotten ", "lock_stale p", "lock_removed p")
	for i, e := range tr.eventsSince(0) {
		require.EqualValues(t, i+1, e.GetNumber())
	}
	requireConsistent(t, tr.ns)
}

func TestEventTellsWhoAndWhat(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir")
	tr.announceAll()
	tr.requireEvents(0, "lock_acquired dir")
	cmd := tr.next(here, createOp(dir, "lock", true))
	cmd.Caller.Pid, cmd.Caller.Lineage = 77, []*storepb.Process{processOf(1)}
	tr.apply(cmd).ok()
	token, at := tr.index, tr.now
	tr.soon().fill(here, dir, "lock", factsFor(storepb.Format_TOWER, "x", tr.now+int64(time.Minute))).ok()
	tr.announceAll()
	want := &storepb.Event{
		Number: 2, Time: tr.now, Event: "lock_acquired", Path: []byte("dir/lock"), Token: token, Acquired: at,
		Format: "tower", Holder: "x", Host: "here", Pid: 1, By: &storepb.Caller{Host: "here", Uid: 7, Gid: 8, Pid: 77},
		Parent: dir, Mode: syscall.S_IFREG | 0o644, Uid: 7, Gid: 8,
	}
	requireSame(t, want, unchained(tr.eventsSince(1)[0]))

	tr.tick(time.Hour)
	want.Number, want.Time, want.Event, want.By, want.Acquired = 3, tr.now, "lock_stale", nil, 0
	want.Reason = tr.lockIn(dir, "lock").GetReason()
	requireSame(t, want, unchained(tr.eventsSince(2)[0]))

	tr.unlink(there, dir, "lock").ok()
	want.Number, want.Time, want.Event = 4, tr.now, "lock_released"
	want.By = &storepb.Caller{Host: "there", Uid: 7, Gid: 8}
	want.Reason = "it was stale: " + want.GetReason()
	requireSame(t, want, unchained(tr.eventsSince(3)[0]))

	tr.file(dir, "unknown")
	tr.announceAll()
	requireSame(t, &storepb.Event{
		Number: 5, Time: tr.now, Event: "lock_acquired", Path: []byte("dir/unknown"), Token: tr.index - 1, Acquired: tr.now - int64(eventDelay),
		Format: "none", Host: "here", By: &storepb.Caller{Host: "here", Uid: 7, Gid: 8},
		Parent: dir, Mode: syscall.S_IFREG | 0o644, Uid: 7, Gid: 8,
	}, unchained(tr.eventsSince(4)[0]))
}

// unchained is an event by itself, without its place among the others.
func unchained(e *storepb.Event) *storepb.Event {
	e = proto.CloneOf(e)
	e.Index, e.Before, e.Hash = 0, nil, nil
	return e
}

func TestStolenTellsOfThePreviousLock(t *testing.T) {
	for name, steal := range map[string]func(tr *driver, facts *storepb.Facts) step{
		"in place":  func(tr *driver, facts *storepb.Facts) step { return tr.fill(there, RootIno, "lock", facts) },
		"by rename": func(tr *driver, facts *storepb.Facts) step { return tr.replace(there, "lock", facts) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(t)
			tr.take(here, "lock", factsFor(storepb.Format_SWARM, "x", 0))
			token, content := tr.token("lock"), tr.content(tr.at(RootIno, "lock"))
			require.NotEmpty(t, content)
			steal(tr, factsFor(storepb.Format_SWARM, "y", 0)).ok()
			sum := sha256.Sum256([]byte(content))
			events := tr.eventsSince(tr.lastEvent() - 2)
			requireSame(t, &storepb.Event{
				Number: tr.lastEvent() - 1, Time: tr.now, Event: "lock_stolen", Path: []byte("lock"), Token: tr.index,
				Format: "swarm", Holder: "y", Host: "there", Pid: 1, By: &storepb.Caller{Host: "there", Uid: 7, Gid: 8},
				Previous: &storepb.Event{
					Token: token, Format: "swarm", Holder: "x", Host: "here", Pid: 1, Mode: syscall.S_IFREG | 0o644, Uid: 7, Gid: 8,
				},
				PreviousHash: "sha256:" + hex.EncodeToString(sum[:]),
				Parent:       RootIno, Mode: syscall.S_IFREG | 0o644, Uid: 7, Gid: 8,
			}, unchained(events[0]))
			require.Equal(t, "lock_acquired", events[1].GetEvent())
			require.Equal(t, tr.index, events[1].GetToken())
		})
	}
}

// TestEventsOfRenames: the old name is released, the new one acquired; a heartbeat by rename is neither.
func TestEventsOfRenames(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "a", towerFacts("x"))
	event := tr.lastEvent()
	tr.rename(RootIno, "a", RootIno, "b").ok()
	events := tr.requireEvents(event, "lock_released a", "lock_acquired b")
	require.Equal(t, "it was renamed", events[0].GetReason())

	tr.do(here, createOp(RootIno, "tmp", false)).ok()
	event = tr.lastEvent()
	tr.fill(here, RootIno, "tmp", towerFacts("x")).ok()
	tr.rename(RootIno, "tmp", RootIno, "b").ok()
	tr.requireEvents(event, "lock_acquired tmp", "lock_released tmp")

	tr.take(here, "c", towerFacts("z"))
	event = tr.lastEvent()
	tr.exchange(RootIno, "b", RootIno, "c").ok()
	tr.requireEvents(event, "lock_stolen b", "lock_acquired b", "lock_stolen c", "lock_acquired c")

	event = tr.lastEvent()
	tr.link(tr.at(RootIno, "b"), RootIno, "d").ok()
	tr.rename(RootIno, "b", RootIno, "d").ok() // names of one inode: nothing happens
	tr.requireEvents(event, "lock_acquired d")
}

// TestEventsOfOrdinaryFiles: what nobody made exclusively and tells of no holder is no lock.
func TestEventsOfOrdinaryFiles(t *testing.T) {
	tr := newDriver(t)
	tr.do(here, createOp(RootIno, "notes", false)).ok()
	tr.write(here, tr.at(RootIno, "notes"), "something").ok()
	tr.rename(RootIno, "notes", RootIno, "other").ok()
	tr.unlink(here, RootIno, "other").ok()
	tr.requireEvents(0)
}

// TestEventsOfWhatIsTakenBack: lockfs itself did that, and says so.
func TestEventsOfWhatIsTakenBack(t *testing.T) {
	tr := newDriver(t)
	made := tr.next(here, createOp(RootIno, "new", true))
	tr.apply(made).ok()
	tr.cancel(made).ok()
	events := tr.requireEvents(0, "lock_acquired new", "lock_released new")
	require.Equal(t, undoneReason, events[1].GetReason())
	require.Nil(t, events[1].GetBy())

	tr.take(here, "old", nil)
	tr.announceAll()
	event := tr.lastEvent()
	moved := tr.next(here, noReplace(RootIno, "old", RootIno, "new"))
	tr.apply(moved).ok()
	tr.cancel(moved).ok()
	events = tr.requireEvents(event, "lock_released old", "lock_acquired new", "lock_released new", "lock_acquired old")
	require.Equal(t, undoneReason, events[2].GetReason())
	require.Nil(t, events[3].GetBy())
}

// TestRetriesAreNoEvents: what is answered again did not happen again.
func TestRetriesAreNoEvents(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", towerFacts("x"))
	cmd := tr.next(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock")}))
	tr.apply(cmd).is(storepb.Code_BUSY)
	event := tr.lastEvent()
	tr.apply(cmd).is(storepb.Code_BUSY)
	tr.requireEvents(event)
}

// TestOnlyTheLastEventsAreKept of each class, and how many there were is known for ever.
func TestOnlyTheLastEventsAreKept(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "lock", towerFacts("x"))
	for range keptEvents + 1 {
		tr.do(0, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock")})).is(storepb.Code_BUSY)
	}
	tr.restart()
	require.EqualValues(t, keptEvents+2, tr.lastEvent())
	events := tr.ns.Events(0, keptEvents+2)
	require.Len(t, events, keptEvents+1)
	require.EqualValues(t, 1, events[0].GetNumber())
	require.EqualValues(t, 3, events[1].GetNumber())
	require.EqualValues(t, keptEvents+2, events[keptEvents].GetNumber())
	counts := map[string]uint64{}
	tr.ns.EventCounts(func(event string, count uint64) { counts[event] = count })
	require.Equal(t, map[string]uint64{"lock_acquired": 1, "removal_refused": keptEvents + 1}, counts)
}

// TestLockEventsPushOutOnlyLockEvents has a user make and remove more locks than events are kept.
func TestLockEventsPushOutOnlyLockEvents(t *testing.T) {
	tr := newDriver(t)
	tr.do(0, opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: "*.x", StaleAfter: int64(time.Hour)}})).ok()
	tr.take(here, "lock", towerFacts("x"))
	tr.do(0, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("lock")})).is(storepb.Code_BUSY)
	before := tr.ns.Events(0, 10)
	require.Len(t, before, 3)
	for tr.lastEvent() < keptEvents+100 {
		tr.do(0, opOf(&storepb.Create{Parent: RootIno, Name: []byte("churn"), Mode: someFile, Exclusive: true, Says: storepb.NameSays_SAYS_LOCK})).ok()
		tr.unlink(0, RootIno, "churn").ok()
	}
	for range 2 {
		rules, refusals := tr.ns.EventsOf(AdministrationEvents, 0, 10), tr.ns.EventsOf(RefusalEvents, 0, 10)
		require.Len(t, rules, 1)
		require.Len(t, refusals, 1)
		requireSame(t, before[0], rules[0])
		requireSame(t, before[2], refusals[0])
		require.Empty(t, tr.ns.EventsOf(RefusalEvents, 3, 10))
		kept := tr.ns.EventsOf(LockEvents, 0, keptEvents+1)
		require.Len(t, kept, keptEvents)
		first := tr.lastEvent() - keptEvents + 1
		require.EqualValues(t, first, kept[0].GetNumber())
		require.EqualValues(t, first, tr.ns.EventsWholeFrom())
		all := tr.ns.Events(0, keptEvents+10)
		require.Len(t, all, keptEvents+2)
		require.EqualValues(t, []uint64{1, 3, first}, []uint64{all[0].GetNumber(), all[1].GetNumber(), all[2].GetNumber()})
		hash := tr.ns.Hash()
		tr.restart()
		require.Equal(t, hash, tr.ns.Hash())
	}
}

func TestEventLine(t *testing.T) {
	tr := newDriver(t)
	dir := tr.mkdir(RootIno, "dir\n\"\xff")
	tr.file(dir, "lock")
	tr.fill(here, dir, "lock", factsFor(storepb.Format_SWARM, "x", 0)).ok()
	tr.fill(there, dir, "lock", factsFor(storepb.Format_SWARM, "y", 0)).ok()
	var line map[string]any
	stolen := tr.eventsSince(tr.lastEvent() - 2)[0]
	require.NoError(t, json.Unmarshal(lockjson.EventLine(stolen), &line))
	require.NotContains(t, string(lockjson.EventLine(stolen)), "\n")
	require.Equal(t, map[string]any{
		"number": float64(3), "event": "lock_stolen", "timestamp": "1970-01-01T01:00:06Z", "lock_name": "lock",
		"lock_path": "dir\n\"\ufffd/lock", "token": float64(6), "format": "swarm", "holder": "y", "host": "there", "pid": float64(1),
		"by": map[string]any{"host": "there", "pid": float64(0), "uid": float64(7)},
		"previous_lock": map[string]any{
			"token": float64(4), "format": "swarm", "holder": "x", "host": "here", "pid": float64(1),
		},
		"previous_lock_hash": stolen.GetPreviousHash(),
		"index":              float64(6), "lock_directory": float64(2),
		"hash_before": hex.EncodeToString(stolen.GetBefore()), "hash": hex.EncodeToString(stolen.GetHash()),
	}, line)
	require.JSONEq(t, `{"number":9,"event":"host_back","timestamp":"1970-01-01T00:00:01Z","host":"h"}`,
		string(lockjson.EventLine(&storepb.Event{Number: 9, Event: "host_back", Time: int64(time.Second), Host: "h"})))
}
