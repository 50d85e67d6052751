package atomicfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "the second", ""} {
		require.NoError(t, Replace(path, []byte(content)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing else is left")

	require.Error(t, Replace(filepath.Join(path, "below"), nil), "not a directory")
	require.Error(t, SyncDir(path+"s"))
}

// TestReplaceIsNotReadByOthers finds a file that somebody else left open to all, and still has.
func TestReplaceIsNotReadByOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	left, err := os.Create(path + ".tmp")
	require.NoError(t, err)
	defer left.Close()
	require.NoError(t, left.Chmod(0o666))
	require.NoError(t, Replace(path, []byte("secret")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = left.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
}

// TestReplaceFollowsNothing that another user has put under the temporary name or the name of the file.
func TestReplaceFollowsNothing(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(victim, []byte("as it was"), 0o644))
	for _, name := range []string{path + ".tmp", path} {
		require.NoError(t, os.Symlink(victim, name))
	}
	require.NoError(t, Replace(path, []byte("secret")))
	content, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "as it was", string(content))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "it is a file")
}

func TestReplaceForAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, ReplaceForAll(path, []byte("open")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "open", string(content))
}

func TestReplaceWithKeepsTheFileWhenWritingFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Replace(path, []byte("first")))
	require.ErrorIs(t, ReplaceWith(path, func(*os.File) error { return os.ErrInvalid }), os.ErrInvalid)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
	require.NoFileExists(t, path+".tmp")
}
