package consensus

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func (v *voter) index() (index ids.Index) {
	v.FSM.View(func(ns *namespace.Namespace) { index = ns.Index() })
	return index
}

// has tells whether there is a name in the root directory.
func (v *voter) has(t testing.TB, name string) bool {
	t.Helper()
	result, err := v.FSM.Query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte(name)},
	}})
	require.NoError(t, err)
	return result.GetCode() == storepb.Code_OK
}

// TestARecoveredVoterHasAllOfItsLog: of its snapshot and of what came after it. It goes on far above,
// also after a restart.
func TestARecoveredVoterHasAllOfItsLog(t *testing.T) {
	cfg := usedDirectory(t)
	before, err := Inspect(cfg.path)
	require.NoError(t, err)
	r, err := OpenRecovery(cfg.path, quietLogger())
	require.NoError(t, err)
	require.Equal(t, before.Last, r.Last.Index)
	require.Equal(t, before.LastTerm, r.Last.Term)
	require.WithinDuration(t, time.Now(), r.LastAppended, testWait)
	require.Len(t, r.Voters(), 1)
	require.Zero(t, r.MissingVoters(nil))
	_, err = cfg.open(t.Context())
	require.ErrorContains(t, err, "in use by another process")
	from, err := r.Do(time.Now(), false)
	require.NoError(t, err)
	require.NoError(t, r.Close())

	for range 2 {
		v := cfg.start(t)
		for i := range 60 {
			require.True(t, v.has(t, fmt.Sprintf("lock%d", i)))
		}
		require.True(t, v.has(t, "last"))
		v.mustCreate(t, fmt.Sprint("later", v.index()))
		require.Greater(t, v.index(), from)
		require.Greater(t, v.index(), before.Last+1<<39)
		require.Len(t, v.Servers(), 1)
		v.snapshot(t)
		require.NoError(t, v.close())
	}
}

// TestARecoveryThatIsCutShort has written the snapshot, and nothing after it; or not even that.
func TestARecoveryThatIsCutShort(t *testing.T) {
	cfg := usedDirectory(t)
	r, err := OpenRecovery(cfg.path, quietLogger())
	require.NoError(t, err)
	require.NoError(t, r.Close(), "nothing was done")
	v := cfg.start(t)
	require.True(t, v.has(t, "last"))
	require.Less(t, v.index(), ids.Index(1000))
	require.NoError(t, v.close())

	r, err = OpenRecovery(cfg.path, quietLogger())
	require.NoError(t, err)
	log := copyOf(t, filepath.Join(cfg.path, logDir))
	_, err = r.Do(time.Now(), false)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(cfg.path, logDir)))
	require.NoError(t, os.Rename(log, filepath.Join(cfg.path, logDir)), "as it was, and not closed")
	v = cfg.start(t)
	require.True(t, v.has(t, "last"))
	require.Greater(t, v.index(), ids.Index(1<<40))
	require.NoError(t, v.close())
}

func copyOf(t testing.TB, dir string) string {
	copied := dir + ".copy"
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	return copied
}

// TestFoundedDirectoryIsANodes begins a cluster from a state, for a node with and without a network.
func TestFoundedDirectoryIsANodes(t *testing.T) {
	state := func() *namespace.Namespace {
		ns := namespace.New()
		require.NoError(t, ns.Rebase(time.Now(), namespace.RebaseOptions{Cluster: "another"}))
		return ns
	}
	for _, alone := range []bool{false, true} {
		cfg := newSetup(t)
		if alone {
			cfg.claim.Address, cfg.Network = "", nil
		}
		cfg.claim.Bootstrap = false
		ns := state()
		require.NoError(t, Create(cfg.path, cfg.claim, ns, 7, nil, quietLogger()))
		v := cfg.start(t)
		require.Equal(t, v.Transport.LocalAddr(), v.Servers()[0].Address)
		require.Greater(t, v.CurrentTerm(), uint64(7))
		v.mustCreate(t, "a")
		require.Greater(t, v.index(), ns.Index())
		require.NoError(t, v.close())
		require.ErrorContains(t, Create(cfg.path, cfg.claim, ns, 7, nil, quietLogger()), "is not empty")
		v = cfg.start(t)
		require.True(t, v.has(t, "a"))
	}
	dir := t.TempDir()
	require.ErrorContains(t, Create(dir, Claim{Name: "-"}, state(), 7, nil, quietLogger()), "node name")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	require.ErrorContains(t, Create(dir, Claim{Name: "a"}, state(), 7, nil, quietLogger()), `"mine"`)
	_, err := OpenRecovery(dir, quietLogger())
	require.ErrorContains(t, err, "is no data directory")
}

// TestHowManyVotersAreToBeCompared: so many that no majority is without one of them.
func TestHowManyVotersAreToBeCompared(t *testing.T) {
	of := func(ids ...string) (c raft.Configuration) {
		for _, id := range ids {
			c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id)})
		}
		return c
	}
	for _, c := range []struct {
		configurations []raft.Configuration
		compared       []string
		misses         int
	}{
		{[]raft.Configuration{of("a")}, nil, 0},
		{[]raft.Configuration{of("a", "b")}, nil, 0},
		{[]raft.Configuration{of("a", "b", "c")}, nil, 1},
		{[]raft.Configuration{of("a", "b", "c")}, []string{"b"}, 0},
		{[]raft.Configuration{of("a", "b", "c")}, []string{"x"}, 1},
		{[]raft.Configuration{of("a", "b", "c", "d", "e")}, []string{"b"}, 1},
		{[]raft.Configuration{of("a", "b", "c", "d", "e")}, []string{"b", "e"}, 0},
		{[]raft.Configuration{of("a", "b"), of("a", "b", "c")}, nil, 1},
		{[]raft.Configuration{of("b", "c", "d"), of("a", "b", "c")}, []string{"b"}, 1},
	} {
		r := &Recovery{dir: &Directory{Identity: Identity{ID: "a"}}, configurations: c.configurations}
		require.Equal(t, c.misses, r.MissingVoters(c.compared), "%v", c)
	}
	require.True(t, Position{2, 5}.Newer(Position{1, 9}))
	require.True(t, Position{2, 5}.Newer(Position{2, 4}))
	require.False(t, Position{2, 5}.Newer(Position{2, 5}))
}
