package namespace

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// requireHash says that the hash that is kept is that of what is in memory.
func requireHash(t require.TestingT, ns *Namespace) {
	snapshot := ns.Snapshot()
	require.Equal(t, ns.Hash(), snapshot.Hash())
	require.Equal(t, snapshot.Recomputed(func() {}), snapshot.Hash())
}

// TestHashIsThatOfTheState after commands of all kinds, however many came between two looks at it, and when the state was restored.
func TestHashIsThatOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = g.often(70)
		looks := pick(g, 2, 20, 90)
		for index := range 1 + g.below(pick(g, 20, 50, 150)) {
			cmd := g.administer(g.next())
			ns.Apply(ids.Index(index+1), cmd)
			if g.often(looks) {
				requireHash(t, ns)
			}
			if g.often(10) {
				again := restored(t, snapshotBytes(t, ns.Snapshot()))
				require.Equal(t, ns.Hash(), again.Hash())
				requireHash(t, again)
				ns = again
				g.ns = ns
			}
		}
		requireHash(t, ns)
	})
}

// administer puts an operation of the leader or an administrator into the place of some.
func (g *generator) administer(cmd *storepb.Command) *storepb.Command {
	if !g.often(10) {
		return cmd
	}
	number := uint64(1)
	for _, alarm := range g.ns.Alarms() {
		number = alarm.GetNumber()
	}
	return &storepb.Command{Time: g.now, Op: pick(g,
		opOf(&storepb.RaiseAlarm{Alarm: &storepb.Alarm{Kind: pick(g, AlarmStateDiffers, AlarmStateUndecided), Node: pick(g, "", "a", "b")}}),
		opOf(&storepb.ClearAlarm{Number: number}),
		opOf(&storepb.FreezeState{}),
		opOf(g.setQuota()), opOf(g.setQuota()), opOf(g.setQuota()),
		opOf(&storepb.DeleteQuota{Path: g.dirPath(), Uid: 7}),
		opOf(&storepb.SetMember{Member: &storepb.Member{Id: pick(g, "i", "j"), Name: pick(g, "n", "o")}}),
		opOf(&storepb.RemoveMember{Id: "i"}),
		opOf(&storepb.SetRule{Rule: &storepb.Rule{Pattern: pick(g, "*", "a"), StaleAfter: 1}}),
		opOf(&storepb.DeleteRule{Pattern: "*"}),
		opOf(&storepb.SetLimits{MaxSessions: pick[uint64](g, 10, 20)}),
	)}
}

// TestHashOfSnapshotStays while the namespace goes on.
func TestHashOfSnapshotStays(t *testing.T) {
	tr := newDriver(t)
	tr.file(RootIno, "f")
	snapshot := tr.ns.Snapshot()
	hash := snapshot.Hash()
	for i := range 1500 {
		tr.write(here, tr.file(RootIno, nameOf(i)), "held").ok()
	}
	require.Equal(t, hash, snapshot.Hash())
	require.Equal(t, hash, snapshot.Recomputed(func() {}))
	require.NotEqual(t, hash, tr.ns.Hash())
	requireHash(t, tr.ns)
}

// TestHashOfJudgedState has a rule judge all names again, and a host's end make locks stale.
func TestHashOfJudgedState(t *testing.T) {
	tr := newDriver(t)
	for i := range 50 {
		tr.take(there, nameOf(i), pidFacts(storepb.Format_PID, processOf(uint32(i))))
	}
	requireHash(t, tr.ns)
	tr.rule(&storepb.Rule{Pattern: "lock-*", StaleAfter: 1, OnStale: "keep"}).ok()
	requireHash(t, tr.ns)
	tr.giveUp(there)
	tr.do(here, opOf(&storepb.ForgetHost{Name: "there"})).ok()
	requireHash(t, tr.ns)
}

// TestRecomputedHashSeesFlippedBit in what was hashed long ago, and also after a restart from a snapshot.
func TestRecomputedHashSeesFlippedBit(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "f")
	tr.write(here, ino, "held").ok()
	before := tr.ns.Hash()
	in, _ := tr.ns.tree.inode(ids.Inode(ino))
	in.content[0] ^= 1
	require.Equal(t, before, tr.ns.Hash())
	require.NotEqual(t, before, tr.ns.Snapshot().Recomputed(func() {}))
	again := restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	require.Equal(t, before, again.Hash())
	require.NotEqual(t, before, again.Snapshot().Recomputed(func() {}))
}

// TestRehashFindsWhatHasChangedByItself also where that was before the state was written: a snapshot tells it.
func TestRehashFindsWhatHasChangedByItself(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "f")
	tr.write(here, ino, "held").ok()
	sound := tr.ns.Hash()
	in, _ := tr.ns.tree.inode(ids.Inode(ino))
	in.content[0] ^= 4
	again := restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	require.Equal(t, sound, again.Hash(), "what is kept goes with it")
	require.False(t, again.Rehash())
	require.NotEqual(t, sound, again.Hash())
	require.True(t, again.Rehash())
	requireHash(t, again)
}
