package namespace

import (
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// factsFor are facts of a format that lives until a time, as a test wants them.
func factsFor(format storepb.Format, holder string, expires int64) *storepb.Facts {
	guard := storepb.Guard_HOST
	if format == storepb.Format_SWARM {
		guard = storepb.Guard_ANYONE
	}
	return &storepb.Facts{Format: format, Holder: holder, Pid: 1, IssuedAt: 1, ExpiresAt: expires, Guard: guard, OnStale: storepb.OnStale_KEEP}
}

// towerFacts are of a holder that never becomes stale by time.
func towerFacts(holder string) *storepb.Facts { return factsFor(storepb.Format_TOWER, holder, 0) }

// processOf is the process that has a pid first on a host that was booted once.
func processOf(pid uint32) *storepb.Process {
	return &storepb.Process{PidNamespace: 1, Pid: pid, Start: 100, BootId: "boot"}
}

// pidFacts are of a lock that lives as long as a process.
func pidFacts(format storepb.Format, process *storepb.Process) *storepb.Facts {
	return &storepb.Facts{
		Format: format, Holder: "p", Pid: process.GetPid(), Guard: storepb.Guard_HOST, OnStale: storepb.OnStale_REMOVE, Process: process,
	}
}

// keptFacts are pidFacts of a lock that stays when it is stale.
func keptFacts(process *storepb.Process) *storepb.Facts {
	facts := pidFacts(storepb.Format_PID, process)
	facts.OnStale = storepb.OnStale_KEEP
	return facts
}

// fill writes content with facts to the file of that name, as the host of the session says it.
func (tr *driver) fill(session, parent uint64, name string, facts *storepb.Facts) step {
	tr.tb.Helper()
	op := tr.fillOp(session, parent, name, facts)
	return tr.do(session, opOf(op))
}

func (tr *driver) fillOp(session, parent uint64, name string, facts *storepb.Facts) *storepb.SetContent {
	tr.tb.Helper()
	ino := tr.at(parent, name)
	require.NotZero(tr.tb, ino, "no file %q", name)
	content := ""
	if facts != nil {
		facts.Host = tr.hosts[session]
		content = lockfact.Format(facts.GetFormat()).String() + " " + facts.GetHolder()
	}
	return &storepb.SetContent{
		Ino: ino, IfVersion: tr.attr(ino).GetVersion(), Content: []byte(content), Facts: facts,
		Name: &storepb.Observation{Parent: parent, Name: []byte(name)},
	}
}

// take creates a lock in the root directory, empty if there are no facts.
func (tr *driver) take(session uint64, name string, facts *storepb.Facts) uint64 {
	tr.tb.Helper()
	ino := tr.do(session, createOp(RootIno, name, true)).ok().GetAttr().GetIno()
	if facts != nil {
		tr.fill(session, RootIno, name, facts).ok()
	}
	return ino
}

// replace writes a temporary file and renames it over a name.
func (tr *driver) replace(session uint64, name string, facts *storepb.Facts) step {
	tr.tb.Helper()
	tr.take(session, "tmp", facts)
	return tr.do(session, renameOp(RootIno, "tmp", RootIno, name))
}

// lock asks for all that is known of a name in the root directory.
func (tr *driver) lock(name string) *storepb.Lock {
	tr.tb.Helper()
	return tr.lockIn(RootIno, name)
}

func (tr *driver) lockIn(parent uint64, name string) *storepb.Lock {
	tr.tb.Helper()
	result := step{tr.ns.Query(getLock(parent, name)), tr.tb}.ok()
	require.Len(tr.tb, result.GetLocks(), 1)
	return result.GetLocks()[0]
}

func (tr *driver) token(name string) uint64 {
	tr.tb.Helper()
	return tr.lock(name).GetToken()
}

// requireState compares the states of names in the root directory.
func (tr *driver) requireState(state string, names ...string) {
	tr.tb.Helper()
	for _, name := range names {
		lock := tr.lock(name)
		require.Equal(tr.tb, state, lock.GetState(), "%s: %v", name, lock)
		require.Equal(tr.tb, state == "held", lock.GetReason() == "", "%s: %v", name, lock)
	}
}

// requireNone tells that names of the root directory are gone.
func (tr *driver) requireNone(names ...string) {
	tr.tb.Helper()
	for _, name := range names {
		require.Zero(tr.tb, tr.at(RootIno, name), "%s is there", name)
	}
}

func (tr *driver) rule(rule *storepb.Rule) step { return tr.do(0, opOf(&storepb.SetRule{Rule: rule})) }

func (tr *driver) deleteRule(pattern string) step {
	return tr.do(0, opOf(&storepb.DeleteRule{Pattern: pattern}))
}

// tick lets time pass, as the leader does.
func (tr *driver) tick(d time.Duration) {
	tr.wait(d - time.Second)
	tr.do(0, opOf(&storepb.Tick{})).ok()
}

// gone reports processes that were killed.
func (tr *driver) gone(session uint64, processes ...*storepb.Process) step {
	return tr.endedBy(session, &storepb.ProcessEnd{Kind: storepb.EndKind_END_SIGNAL, Number: 9}, processes...)
}

// endedBy reports processes that ended in one way.
func (tr *driver) endedBy(session uint64, how *storepb.ProcessEnd, processes ...*storepb.Process) step {
	op := &storepb.ProcessGone{Processes: processes}
	for range processes {
		op.Ends = append(op.Ends, how)
	}
	return tr.do(session, opOf(op))
}

func (tr *driver) forget(host string) step {
	return tr.do(0, opOf(&storepb.ForgetHost{Name: host}))
}

// eventsSince answers the events after a number.
func (tr *driver) eventsSince(number uint64) []*storepb.Event { return tr.ns.Events(number, 1000) }

// requireEvents compares the kinds of the events after a number.
func (tr *driver) requireEvents(number uint64, kinds ...string) []*storepb.Event {
	tr.tb.Helper()
	events := tr.eventsSince(number)
	var got []string
	for _, e := range events {
		got = append(got, e.GetEvent()+" "+string(e.GetPath()))
	}
	require.Equal(tr.tb, kinds, got)
	return events
}

// announceAll has the events of all acquisitions told.
func (tr *driver) announceAll() {
	tr.tb.Helper()
	if tr.ns.tree.byPending.Len() > 0 {
		tr.tick(eventDelay)
	}
	require.Zero(tr.tb, tr.ns.tree.byPending.Len())
}

// soon has the next command come a moment after the one before, not a second.
func (tr *driver) soon() *driver {
	tr.wait(time.Millisecond - time.Second)
	return tr
}

func (tr *driver) lastEvent() uint64 { return tr.ns.LastEvent() }

// restart goes on with what a snapshot holds.
func (tr *driver) restart() {
	tr.tb.Helper()
	hash := tr.ns.Snapshot().Hash()
	tr.ns = restored(tr.tb, snapshotBytes(tr.tb, tr.ns.Snapshot()))
	require.Equal(tr.tb, hash, tr.ns.Snapshot().Hash())
	requireConsistent(tr.tb, tr.ns)
}
