package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// usedDataDir is that of a node that has a log, a vote and snapshots, and is not running.
func usedDataDir(t *testing.T) Config {
	t.Helper()
	cfg := testConfig(t, "a")
	cfg.SnapshotEntries = 20
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	for i := range 60 {
		require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprintf("lock%d", i)))
	}
	takeSnapshot(t, node)
	require.Equal(t, storepb.Code_OK, create(t, client, "last"))
	require.NoError(t, client.Close(t.Context()))
	require.NoError(t, node.Close())
	return cfg
}

// eachFile names the files of a data directory that hold its state.
func eachFile(t *testing.T, cfg Config) []string {
	t.Helper()
	states, err := filepath.Glob(filepath.Join(cfg.DataDir, snapshotDir, "*", "state.bin"))
	require.NoError(t, err)
	require.NotEmpty(t, states)
	newest := states[len(states)-1]
	return []string{
		filepath.Join(cfg.DataDir, identityFile), filepath.Join(cfg.DataDir, logFile),
		newest, filepath.Join(filepath.Dir(newest), "meta.json"),
	}
}

func TestNodeRefusesDamage(t *testing.T) {
	cfg := usedDataDir(t)
	damages := map[string]func(t *testing.T, path string){
		"emptied":   func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"removed":   func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"cut":       func(t *testing.T, path string) { truncateTo(t, path, 0.125) },
		"scribbled": scribble,
	}
	for _, path := range eachFile(t, cfg) {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for what, damage := range damages {
			t.Run(filepath.Base(path)+" "+what, func(t *testing.T) {
				damage(t, path)
				node, err := Open(cfg)
				if node != nil {
					_ = node.Close()
				}
				damaged := new(DamagedError)
				require.ErrorAs(t, err, &damaged)
				require.Equal(t, path, damaged.Path)
				require.ErrorContains(t, err, "lockfs member remove", "what to do")
				require.NoError(t, os.WriteFile(path, whole, 0o600))
			})
		}
	}
	startNode(t, cfg)
}

func truncateTo(t *testing.T, path string, part float64) {
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(float64(info.Size())*part)))
}

// scribble overwrites most of a file; a log has free pages, where damage does no harm.
func scribble(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := len(data) / 8; i < len(data); i++ {
		data[i] = 0xA5
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func TestVoteIsOneRecord(t *testing.T) {
	bolt, err := raftboltdb.NewBoltStore(filepath.Join(t.TempDir(), "log.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, bolt.Close()) }()
	votes := &voteStore{StableStore: bolt}
	term, err := votes.GetUint64([]byte(keyVoteTerm))
	require.NoError(t, err)
	require.Zero(t, term)

	require.NoError(t, votes.SetUint64([]byte(keyVoteTerm), 5))
	require.NoError(t, votes.Set([]byte(keyVoteCandidate), []byte("b")))
	require.NoError(t, votes.SetUint64([]byte(keyVoteTerm), 6)) // the node dies before it names the candidate

	after := &voteStore{StableStore: bolt}
	term, err = after.GetUint64([]byte(keyVoteTerm))
	require.NoError(t, err)
	require.Equal(t, uint64(5), term)
	candidate, err := after.Get([]byte(keyVoteCandidate))
	require.NoError(t, err)
	require.Equal(t, "b", string(candidate))

	require.NoError(t, votes.SetUint64([]byte("CurrentTerm"), 9))
	current, err := votes.GetUint64([]byte("CurrentTerm"))
	require.NoError(t, err)
	require.Equal(t, uint64(9), current, "other keys pass through")
}

// fullDisk fails every write.
type fullDisk struct{ raft.LogStore }

func (fullDisk) StoreLogs([]*raft.Log) error { return errors.New("no space left on device") }

func TestLogOnAFailingDiskEndsTheNode(t *testing.T) {
	failed := make(chan error, 1)
	log := &guardedLog{LogStore: fullDisk{}, path: "log.db", fatal: func(err error) { failed <- err }}
	require.Error(t, log.StoreLog(&raft.Log{}))
	require.ErrorContains(t, <-failed, "no space left")
}
