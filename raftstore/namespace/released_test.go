package namespace

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/version"
)

// makeFiles says that the files of the newest version are to be made anew, which is for who changes a version that is not released.
var makeFiles = flag.Bool("make-released", false, "make the test data of the newest version anew")

// TestReleasedSnapshotsAreRead has a snapshot that each version has written, and goes on from it.
func TestReleasedSnapshotsAreRead(t *testing.T) {
	if *makeFiles {
		makeReleased(t)
	}
	for v := uint32(1); v <= version.Newest; v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			data, err := os.ReadFile(releasedFile(v, "snapshot"))
			require.NoError(t, err)
			hash, err := os.ReadFile(releasedFile(v, "hash"))
			require.NoError(t, err)
			ns := restored(t, data)
			requireConsistent(t, ns)
			require.EqualValues(t, v, ns.Version())
			require.Greater(t, ns.Inodes(), 10)
			require.NotZero(t, ns.Sessions())
			require.Equal(t, string(hash), ns.Hash()+"\n", "as it was for who wrote it")
			require.Equal(t, ns.Hash(), ns.Snapshot().Recomputed(func() {}))
			again := versioned{ns, t}
			again.require(0, again.member("later", version.Oldest, version.Newest))
			requireConsistent(t, ns)
		})
	}
}

func releasedFile(of uint32, name string) string {
	return filepath.Join("testdata", fmt.Sprintf("version%d", of), name)
}

// makeReleased writes a state with some of everything.
func makeReleased(t *testing.T) {
	ns := rapid.Custom(func(t *rapid.T) *Namespace {
		ns := New()
		g := newGenerator(t, ns)
		g.locks = true
		for index := ids.Index(1); index <= 600; index++ {
			ns.Apply(index, g.next())
		}
		return ns
	}).Example(1)
	require.NoError(t, os.MkdirAll(filepath.Dir(releasedFile(version.Newest, "snapshot")), 0o755))
	require.NoError(t, os.WriteFile(releasedFile(version.Newest, "snapshot"), snapshotBytes(t, ns.Snapshot()), 0o644))
	require.NoError(t, os.WriteFile(releasedFile(version.Newest, "hash"), []byte(ns.Hash()+"\n"), 0o644))
}
