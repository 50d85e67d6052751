package consensus

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/version"
)

// filesOf are the contents and times of all files of a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		content := ""
		if !entry.IsDir() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			content = string(data)
		}
		files[path] = info.ModTime().String() + content
		return nil
	}))
	return files
}

// TestDataOfAnotherVersionStaysAsItIs has the data directory of a cluster at the second version, and
// programs that do not know it.
func TestDataOfAnotherVersionStaysAsItIs(t *testing.T) {
	s := newSetup(t)
	s.claim.Versions = version.Range{Oldest: 1, Newest: 2}
	v, err := s.open(t.Context())
	require.NoError(t, err)
	require.NoError(t, v.dir.enter(2))
	require.NoError(t, v.dir.enter(1), "it never goes back")
	require.NoError(t, v.close())
	before := filesOf(t, s.path)

	for _, c := range []struct {
		known version.Range
		why   error
		words string
	}{
		{version.Range{Oldest: 1, Newest: 1}, codec.ErrNewer, "the cluster runs at version 2, and this program knows 1: a newer version wrote it: update this node"},
		{version.Range{Oldest: 3, Newest: 4}, codec.ErrOlder, "the cluster runs at version 2, and this program knows 3 to 4"},
	} {
		s.claim.Versions = c.known
		_, err = s.open(t.Context())
		require.ErrorIs(t, err, c.why)
		require.ErrorContains(t, err, c.words)
		require.ErrorContains(t, err, s.path+", which stays as it is")
		require.Equal(t, before, filesOf(t, s.path))
	}
	_, err = OpenRecovery(s.path, quietLogger())
	require.ErrorIs(t, err, codec.ErrNewer)
	require.Equal(t, before, filesOf(t, s.path))

	s.claim.Versions = version.Range{Oldest: 2, Newest: 3}
	v, err = s.open(t.Context())
	require.NoError(t, err)
	require.NoError(t, v.close())
}
