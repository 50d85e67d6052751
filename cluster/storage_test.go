package cluster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc64"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
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
	segments, err := filepath.Glob(filepath.Join(cfg.DataDir, logDir, "*.wal"))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	return []string{
		filepath.Join(cfg.DataDir, identityFile), filepath.Join(cfg.DataDir, votesFile),
		segments[0], filepath.Join(cfg.DataDir, logDir, "segments"), newest, filepath.Join(filepath.Dir(newest), "meta.json"),
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

// requireSound requires that a node names a file that it does not start with, and says neither that it is damaged nor that
// anything is to be moved away.
func requireSound(t *testing.T, cfg Config, path, what string) {
	t.Helper()
	node, err := Open(cfg)
	if node != nil {
		_ = node.Close()
	}
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, what)
	require.NotErrorAs(t, err, new(*DamagedError))
	for _, advice := range []string{"damaged", "remove", "move"} {
		require.NotContains(t, err.Error(), advice)
	}
}

func TestErrorsOfTheDiskAreNotDamage(t *testing.T) {
	cfg := usedDataDir(t)
	for _, path := range eachFile(t, cfg) {
		t.Run(filepath.Base(path), func(t *testing.T) { // a directory in its place cannot be read
			require.NoError(t, os.Rename(path, path+".away"))
			require.NoError(t, os.Mkdir(path, 0o700))
			requireSound(t, cfg, path, "is a directory")
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Rename(path+".away", path))
		})
	}
	startNode(t, cfg)
}

func TestNewerVersionsAreNotDamage(t *testing.T) {
	cfg := usedDataDir(t)
	files := eachFile(t, cfg)
	identity, state, meta := files[0], files[4], files[5]
	replace := func(path, old, with string) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		changed := bytes.Replace(content, []byte(old), []byte(with), 1)
		require.NotEqual(t, content, changed)
		require.NoError(t, os.WriteFile(path, changed, 0o600))
	}
	replace(identity, `"version": 1`, `"later": {}, "version": 2`)
	requireSound(t, cfg, identity, "update this node")
	replace(identity, `"later": {}, "version": 2`, `"version": 1`)
	replace(meta, `"Version":1`, `"Version":2`)
	requireSound(t, cfg, meta, "update this node")
	replace(meta, `"Version":2`, `"Version":1`)

	header := "lockfs-snapshot\n"
	content, err := os.ReadFile(state)
	require.NoError(t, err)
	sum := func(content []byte) string {
		crc := crc64.New(crc64.MakeTable(crc64.ECMA))
		_, _ = crc.Write(content)
		return base64.StdEncoding.EncodeToString(crc.Sum(nil))
	}
	newer := bytes.Clone(content)
	require.EqualValues(t, 8, newer[len(header)+1], "the version is the first field")
	newer[len(header)+2]++
	require.NoError(t, os.WriteFile(state, newer, 0o600))
	replace(meta, sum(content), sum(newer))
	requireSound(t, cfg, state, "update this node")
	require.NoError(t, os.WriteFile(state, content, 0o600))
	replace(meta, sum(newer), sum(content))
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
	path := filepath.Join(t.TempDir(), votesFile)
	votes, err := openVotes(path, false)
	require.NoError(t, err)
	requireVotes(t, votes, 0, 0, "")
	require.NoError(t, votes.SetUint64([]byte(keyCurrentTerm), 5))
	require.NoError(t, votes.SetUint64([]byte(keyVoteTerm), 5))
	require.NoError(t, votes.Set([]byte(keyVoteCandidate), []byte("b")))
	require.NoError(t, votes.SetUint64([]byte(keyCurrentTerm), 6))
	require.NoError(t, votes.SetUint64([]byte(keyVoteTerm), 6)) // the node dies before it names the candidate
	require.NoError(t, votes.Close())

	votes, err = openVotes(path, true)
	require.NoError(t, err)
	requireVotes(t, votes, 6, 5, "b")
	require.Error(t, votes.SetUint64([]byte("another"), 1), "what is not known would be lost")
	require.NoError(t, votes.Close())
}

func requireVotes(t testing.TB, votes *voteStore, current, term uint64, candidate string) {
	t.Helper()
	has, err := votes.GetUint64([]byte(keyCurrentTerm))
	require.NoError(t, err)
	require.Equal(t, current, has)
	has, err = votes.GetUint64([]byte(keyVoteTerm))
	require.NoError(t, err)
	require.Equal(t, term, has)
	name, err := votes.Get([]byte(keyVoteCandidate))
	require.NoError(t, err)
	require.Equal(t, candidate, string(name))
}

// TestVotesWithFlippedBitsAreNotBelieved flips bits of what says which record is the newest, and of the record itself: either
// the node refuses the file, or the votes are the same.
func TestVotesWithFlippedBitsAreNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), votesFile)
	votes, err := openVotes(path, false)
	require.NoError(t, err)
	const candidate = "a candidate"
	for term := range uint64(5) {
		require.NoError(t, votes.SetUint64([]byte(keyCurrentTerm), term+1))
		require.NoError(t, votes.SetUint64([]byte(keyVoteTerm), term+1))
		require.NoError(t, votes.Set([]byte(keyVoteCandidate), []byte(candidate)))
	}
	require.NoError(t, votes.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	var places []int
	for page := range 2 {
		for at := range boltMetaSize {
			places = append(places, page*os.Getpagesize()+boltPageHead+at)
		}
	}
	records := 0
	for at := 0; ; records++ {
		next := bytes.Index(whole[at:], []byte(candidate))
		if next < 0 {
			break
		}
		at += next + len(candidate)
		for back := range len(candidate) + 16 + checksumSize {
			places = append(places, at-1-back)
		}
	}
	require.Positive(t, records)
	refused := 0
	for _, at := range places {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		votes, err := openVotes(path, true)
		if err != nil {
			require.ErrorAs(t, err, new(*DamagedError))
			refused++
			continue
		}
		requireVotes(t, votes, 5, 5, candidate)
		require.NoError(t, votes.Close())
	}
	require.GreaterOrEqual(t, refused, 2*boltMetaSize+checksumSize+16+len(candidate))
}

// fullDisk fails every write.
type fullDisk struct{ raft.LogStore }

func (fullDisk) StoreLogs([]*raft.Log) error { return errors.New("no space left on device") }

func (fullDisk) DeleteRange(uint64, uint64) error { return errors.New("input/output error") }

func TestLogOnAFailingDiskEndsTheNode(t *testing.T) {
	for want, write := range map[string]func(*guardedLog) error{
		"no space left":      func(log *guardedLog) error { return log.StoreLog(&raft.Log{}) },
		"input/output error": func(log *guardedLog) error { return log.DeleteRange(1, 2) },
	} {
		disk, failed := testDisk()
		require.Error(t, write(&guardedLog{fullDisk{}, disk}))
		require.NotEmpty(t, failed, want)
		require.ErrorContains(t, <-failed, want)
		require.True(t, disk.silence.kept())
	}
}

// TestUnfinishedSnapshotsAreRemoved has a process end, again and again, while it takes a snapshot.
func TestUnfinishedSnapshotsAreRemoved(t *testing.T) {
	cfg := usedDataDir(t)
	odd := filepath.Join(t.TempDir(), "[odd]*")
	require.NoError(t, os.Rename(cfg.DataDir, odd))
	cfg.DataDir = odd
	before, err := os.ReadDir(filepath.Join(cfg.DataDir, snapshotDir))
	require.NoError(t, err)
	for i := range 3 {
		left := filepath.Join(cfg.DataDir, snapshotDir, fmt.Sprintf("2-%d-1789%s", 1000+i, unfinished))
		require.NoError(t, os.Mkdir(left, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(left, stateFile), []byte("half"), 0o600))
	}
	node := startNode(t, cfg)
	client := openTestClient(t, node, "")
	require.Equal(t, storepb.Code_OK, lookup(t, client, "last"))
	after, err := os.ReadDir(filepath.Join(cfg.DataDir, snapshotDir))
	require.NoError(t, err)
	require.Len(t, after, len(before))
}
