package wal

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// files is what a directory holds, and when each file was changed last.
func files(t *testing.T, dir string) map[string]string {
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

// TestLookingChangesNothing looks at a log of several segments while it is open, after a crash in a batch, and once it is closed.
func TestLookingChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	_, err := OpenView(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	log := mustOpen(t, dir, false)
	requireView(t, dir, 0, 0)
	const last = 200
	for index := uint64(1); index <= last; index += 2 {
		require.NoError(t, log.StoreLogs([]*raft.Log{entry(index), entry(index + 1)}))
	}
	require.NoError(t, log.DeleteRange(1, 10))
	requireView(t, dir, 11, last)
	before, err := os.ReadFile(tailOf(t, dir))
	require.NoError(t, err)
	require.NoError(t, log.StoreLogs([]*raft.Log{entry(last + 1)}))
	crash(t, log)
	tail := tailOf(t, dir)
	after, err := os.ReadFile(tail)
	require.NoError(t, err)
	require.Equal(t, len(before), len(after), "it is the same segment")
	torn := bytes.Clone(after)
	clear(torn[used(after)-wordSize:])
	require.NoError(t, os.WriteFile(tail, torn, 0o600))
	requireView(t, dir, 11, last)
	require.NoError(t, os.WriteFile(tail, after, 0o600))
	log = mustOpen(t, dir, true)
	requireView(t, dir, 11, last+1)
	require.NoError(t, log.Close())
	requireView(t, dir, 11, last+1)
}

func requireView(t *testing.T, dir string, first, last uint64) {
	t.Helper()
	before := files(t, dir)
	view, err := OpenView(dir)
	require.NoError(t, err)
	require.Equal(t, []uint64{first, last}, []uint64{view.First, view.Last})
	for _, index := range []uint64{0, first - 1, last + 1} {
		_, err := view.Entry(index)
		require.ErrorContains(t, err, "there is no entry")
	}
	for index := first; index <= last && first != 0; index++ {
		got, err := view.Entry(index)
		require.NoError(t, err)
		require.Equal(t, entry(index).Data, got.Data)
	}
	require.Equal(t, before, files(t, dir))
}
