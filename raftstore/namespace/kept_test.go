package namespace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/version"
	"lockfs/raftstore/version/goldendata"
)

// TestKeptSnapshotsAreRead has a snapshot that each version has written, and goes on from it.
func TestKeptSnapshotsAreRead(t *testing.T) {
	goldendata.Each(t, func(dir string) { writeKept(t, dir) }, func(t *testing.T, of uint32, dir string) {
		data, err := os.ReadFile(filepath.Join(dir, "snapshot"))
		require.NoError(t, err)
		hash, err := os.ReadFile(filepath.Join(dir, "hash"))
		require.NoError(t, err)
		ns := restored(t, data)
		requireConsistent(t, ns)
		require.Equal(t, of, ns.Version())
		require.Greater(t, ns.Inodes(), 10)
		require.NotZero(t, ns.Sessions())
		require.Equal(t, string(hash), ns.Hash()+"\n", "as it was for who wrote it")
		require.Equal(t, ns.Hash(), ns.Snapshot().Recomputed(func() {}))
		again := versioned{ns, t}
		again.require(0, again.member("later", version.Oldest, version.Newest))
		requireConsistent(t, ns)
	})
}

// writeKept writes a state with some of everything.
func writeKept(t *testing.T, dir string) {
	ns := rapid.Custom(func(t *rapid.T) *Namespace {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = true
		for index := ids.Index(1); index <= 600; index++ {
			ns.Apply(index, g.next())
		}
		return ns
	}).Example(1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "snapshot"), snapshotBytes(t, ns.Snapshot()), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hash"), []byte(ns.Hash()+"\n"), 0o644))
}
