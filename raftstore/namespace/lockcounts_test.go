package namespace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
)

// requireLocksCounted compares what is counted with what a look at every name finds.
func requireLocksCounted(t require.TestingT, ns *Namespace) {
	files, dirs := map[lockKind]int{}, 0
	ns.tree.byName.Scan(func(e *entry) bool {
		in, found := ns.tree.inode(e.ino)
		require.True(t, found)
		switch {
		case in.isDir() && e.exclusive && !ns.tree.hasEntries(e.ino):
			dirs++
		case !in.isDir() && ns.isLock(e, in) && !lockfact.IsTemporary(e.name):
			files[lockKind{ns.govern(e, in).Format, e.stale != nil}]++
		}
		return true
	})
	require.Equal(t, files, ns.tree.lockCounts.files)
	require.Equal(t, dirs, ns.tree.lockCounts.dirs)
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
