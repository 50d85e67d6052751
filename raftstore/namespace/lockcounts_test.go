package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// requireLocksCounted compares what is counted with what a look at every name finds.
func requireLocksCounted(t require.TestingT, ns *Namespace) {
	files, dirs := map[lockKind]int{}, 0
	ns.tree.byName.Scan(func(e *entry) bool {
		in, found := ns.tree.inode(e.ino)
		require.True(t, found)
		switch {
		case in.isDir() && e.exclusive && isNamedByTheBook(e) && !ns.tree.hasEntries(e.ino):
			dirs++
		case !in.isDir() && ns.whyLock(e, in) != notLock && !lockfact.IsTemporary(e.name):
			files[lockKind{ns.effective(e, in).Format, e.stale != nil}]++
		}
		return true
	})
	require.Equal(t, files, ns.tree.lockCounts.files)
	require.Equal(t, dirs, ns.tree.lockCounts.dirs)
}

func TestHostsAreCounted(t *testing.T) {
	tr := newDriver(t)
	tr.take(here, "a", keptFacts(processOf(1)))
	tr.take(there, "b", keptFacts(processOf(2)))
	require.Equal(t, HostCounts{Mounted: 2}, tr.ns.HostCounts())
	tr.giveUp(here)
	require.Equal(t, HostCounts{Mounted: 1, Silent: 1, Unreachable: 1}, tr.ns.HostCounts())
	tr.do(there, opOf(&storepb.CloseSession{})).ok()
	require.Equal(t, HostCounts{Left: 1, Silent: 1, Unreachable: 2}, tr.ns.HostCounts())
}

// TestPatienceIsWithSilentHosts: the leader looks for locks whose rule does not wait any longer only if there may be some.
func TestPatienceIsWithSilentHosts(t *testing.T) {
	tr := newDriver(t)
	tr.rule(&storepb.Rule{Pattern: "*", HostTimeout: int64(time.Minute)}).ok()
	tr.take(there, "lock", pidFacts(storepb.Format_PID, processOf(1)))
	require.False(t, tr.ns.AwaitsHosts())
	tr.giveUp(there)
	require.True(t, tr.ns.AwaitsHosts())
	tr.deleteRule("*").ok()
	require.False(t, tr.ns.AwaitsHosts())
}

// BenchmarkCounts is what a scrape asks of the state, beside a million locks.
func BenchmarkCounts(b *testing.B) {
	ns, _ := heldNamespace(heldLocks, someFacts)
	b.ResetTimer()
	for b.Loop() {
		total := ns.LockDirectories() + ns.HostCounts().Unreachable
		ns.LockCounts(func(_ lockfact.Format, _ bool, count int) { total += count })
		held, waiting := ns.KernelLocks()
		require.Positive(b, total+held+waiting)
	}
}
