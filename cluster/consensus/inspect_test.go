package consensus

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// contentOf is what a directory holds, and when each file was changed last.
func contentOf(t *testing.T, dir string) map[string]string {
	found := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		found[path] = info.ModTime().String() + info.Mode().String()
		if !entry.IsDir() {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			found[path] += string(content)
		}
		return nil
	}))
	return found
}

// TestInspectChangesNothing looks at all of a data directory whose log has been cut.
func TestInspectChangesNothing(t *testing.T) {
	cfg := usedDirectory(t)
	before := contentOf(t, cfg.path)
	found, err := Inspect(cfg.path)
	require.NoError(t, err)
	require.Equal(t, "a", found.Node)
	require.NotNil(t, found.Snapshot)
	require.Greater(t, found.First, uint64(1))
	require.Greater(t, found.Last, found.Snapshot.Index)
	require.NotZero(t, found.LastTerm)
	_, err = found.Entry(found.First - 1)
	require.ErrorContains(t, err, "the snapshot stands for all up to")
	operations := make(map[string]bool)
	for index := found.First; index <= found.Last; index++ {
		entry, err := found.Entry(index)
		require.NoError(t, err)
		require.NoError(t, entry.Err)
		require.Equal(t, index, entry.Index)
		operations[entry.Type] = true
	}
	require.Contains(t, operations, "command")
	require.Equal(t, before, contentOf(t, cfg.path))
}
