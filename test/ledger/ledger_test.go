package ledger

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEntriesAddUp: what is written is read, and the tables have the sums, and what never came.
func TestEntriesAddUp(t *testing.T) {
	t.Setenv(Variable, "")
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	require.NoError(t, New(Soak).Add(), "no ledger is asked for")
	t.Setenv(Variable, path)
	for seed := range uint64(2) {
		e := New(Soak)
		require.NotEmpty(t, e.Commit)
		e.Seconds, e.FirstSeed, e.LastSeed = 1800, seed, seed
		e.Histories, e.Undecided, e.Operations = 600, 1, 70_000
		e.Faults["leader killed"] = 3
		e.Left = map[string]int64{"guest frozen": 2}
		e.Coverage = map[string]map[string]int64{"leader killed": {"election": 1, "guest frozen": 1}}
		require.NoError(t, e.Add())
	}
	cuts := New(Cuts)
	cuts.Counts = map[string]int64{"entries": 900, "votes": 1100}
	cuts.Findings = []string{"votes: lost"}
	require.NoError(t, cuts.Add())
	all, err := Read(path)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.WithinDuration(t, time.Now(), all[0].Began, time.Minute)

	faults, moments := []string{"leader killed", "guest frozen"}, []string{"election", "snapshot"}
	tables := Tables(all, []string{"entries", "votes"}, faults, moments)
	for _, row := range []string{
		"| histories under faults, checked | 1,198 | 50,000 |\n",
		"| hours of soak | 1.0 | 24 |\n",
		"| power cuts in each kind of write; the fewest: entries | 900 | 1,000 |\n",
		"| 1.0 | 1,200 | 2 | 140,000 | 6 | 0 |\n",
		"| leader killed | 6 | 0 | 2 | **never** | 1 |\n",
		"| guest frozen | 0 | 4 | **never** | **never** | 0 |\n",
		"| votes | 1,100 |\n",
		": votes: lost",
	} {
		require.Contains(t, tables, row)
	}
	require.Equal(t, "leader killed: snapshot, leader killed\nguest frozen: election, snapshot, leader killed, guest frozen\n", Never(all, faults, moments))
}
