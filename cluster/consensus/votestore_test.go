package consensus

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"lockfs/raftstore/checksum"
)

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

// TestVotesWhoseFileWasBegunOnly: a process was killed after it had created the file, and before the file
// could hold a record.
func TestVotesWhoseFileWasBegunOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), votesFile)
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = openVotes(path, true)
	require.ErrorAs(t, err, new(*DamagedError), "a node that was in a cluster had votes")
	votes, err := openVotes(path, false)
	require.NoError(t, err)
	requireVotes(t, votes, 0, 0, "")
	require.NoError(t, votes.Close())
}

// TestVotesWithFlippedBitsAreNotBelieved flips bits of what says which record is the newest, and of the
// record itself: either the node refuses the file, or the votes are the same.
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
		for back := range len(candidate) + 16 + checksum.Size {
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
	require.GreaterOrEqual(t, refused, 2*boltMetaSize+checksum.Size+16+len(candidate))
}
