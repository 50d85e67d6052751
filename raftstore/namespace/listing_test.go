package namespace

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestListingIsStable reads a directory in pages while names come, go, and are replaced: a name that was
// there throughout comes exactly once, no name comes twice, none comes that was never there.
func TestListingIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := New()
		g := newGenerator(t, ns)
		index := uint64(0)
		apply := func(op *storepb.Op) {
			index++
			ns.Apply(ids.Index(index), &storepb.Command{Op: op})
		}
		name := func(kind string, n int) string { return kind + nameOf(g.below(n)) }
		throughout, ever := map[string]bool{}, map[string]bool{".": true, "..": true}
		for i := range 1 + g.below(20) {
			stays := "stays-" + nameOf(i)
			apply(createOp(RootIno, stays, true))
			apply(createOp(RootIno, name("goes-", 10), true))
			throughout[stays] = true
		}
		churn := func() {
			switch g.below(6) {
			case 0, 1:
				apply(createOp(RootIno, name("goes-", 10), true))
			case 2:
				apply(opOf(&storepb.Unlink{Parent: RootIno, Name: []byte(name("goes-", 10))}))
			case 3:
				apply(renameOp(RootIno, name("goes-", 10), RootIno, name("goes-", 10)))
			case 4: // write a temporary file and rename it to a name that others look for
				apply(createOp(RootIno, "goes-tmp", false))
				apply(renameOp(RootIno, "goes-tmp", RootIno, name("stays-", len(throughout))))
			case 5:
				op := renameOp(RootIno, name("stays-", len(throughout)), RootIno, name("stays-", len(throughout)))
				op.GetRename().Exchange = true
				apply(op)
			}
			for _, e := range listing(ns, RootIno, 0) {
				ever[string(e.GetName())] = true
			}
		}
		churn()
		seen, after := map[string]bool{}, uint64(0)
		for round := 0; ; round++ {
			page := uint32(1 + g.below(5))
			entries := ns.Query(readDirOf(RootIno, after, page)).GetEntries()
			require.LessOrEqual(t, len(entries), int(page))
			for _, e := range entries {
				require.False(t, seen[string(e.GetName())] && throughout[string(e.GetName())], "%q twice", e.GetName())
				require.Contains(t, ever, string(e.GetName()))
				require.Greater(t, e.GetCookie(), after)
				after = e.GetCookie()
				seen[string(e.GetName())] = true
			}
			if len(entries) == 0 {
				break
			}
			for range g.below(4) {
				if round < 50 { // or new names would come for ever
					churn()
				}
			}
		}
		for name := range throughout {
			require.True(t, seen[name], "%q was skipped", name)
		}
		requireConsistent(t, ns)
	})
}

func TestListingPages(t *testing.T) {
	tr := newDriver(t)
	for i := range DirPage + 10 {
		tr.file(RootIno, nameOf(i))
	}
	require.Len(t, tr.ns.Query(readDirOf(RootIno, 0, 0)).GetEntries(), DirPage)
	require.Len(t, tr.ns.Query(readDirOf(RootIno, 0, 1<<31)).GetEntries(), DirPage)
	whole := listing(tr.ns, RootIno, 0)
	require.Len(t, whole, DirPage+12)
	for _, page := range []uint32{1, 2, 3, 100} {
		require.Equal(t, whole, listing(tr.ns, RootIno, page))
	}
	require.Empty(t, tr.ns.Query(readDirOf(RootIno, ^uint64(0), 0)).GetEntries())
}
