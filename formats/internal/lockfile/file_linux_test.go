package lockfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRemoveRemovesOnlyWhatWasSeen: a program that knows nothing of LockDir replaces the lock between
// look and removal.
func TestRemoveRemovesOnlyWhatWasSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	seen, content, err := Open(path)
	require.NoError(t, err)
	defer func() { _ = seen.Close() }()
	require.Equal(t, "old", string(content))

	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, Remove(path, seen), fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("new"), 0o600))
	require.ErrorIs(t, Remove(path, seen), fs.ErrNotExist)
	content, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(content))
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// TestRemoveIsForOne: of many who saw one lock, one removes it.
func TestRemoveIsForOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	var seen [8]*os.File
	for i := range seen {
		var err error
		seen[i], _, err = Open(path)
		require.NoError(t, err)
		defer func() { _ = seen[i].Close() }()
	}
	var taken atomic.Int32
	var all sync.WaitGroup
	for _, seen := range seen {
		all.Go(func() {
			if Remove(path, seen) == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, taken.Load())
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	require.NoError(t, Create(path, []byte("x"), 0o600))
	require.ErrorIs(t, Create(path, []byte("y"), 0o600), fs.ErrExist)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.ErrorIs(t, Create(filepath.Join(path, "x"), nil, 0o600), syscall.ENOTDIR)
}

func TestCreateFromWhereNothingCanBeLinked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	for _, errno := range []error{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK} {
		none := func(string, string) error { return errno }
		require.NoError(t, CreateFrom(path+".tmp", path, []byte("x"), 0o600, none))
		require.ErrorIs(t, CreateFrom(path+".tmp", path, []byte("y"), 0o600, none), fs.ErrExist)
		require.NoError(t, os.Remove(path))
	}
	lost := func(from, to string) error { _ = os.Link(from, to); return syscall.EIO }
	require.NoError(t, CreateFrom(path+".tmp", path, nil, 0o600, lost))
	require.ErrorIs(t, CreateFrom(path+".tmp", path, nil, 0o600, lost), syscall.EIO)
	require.NoFileExists(t, path+".tmp")
}

func TestOpenOpensFilesOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink("pipe", filepath.Join(dir, "link")))
	for _, name := range []string{"pipe", "link", "."} {
		_, _, err := Open(filepath.Join(dir, name))
		require.ErrorContains(t, err, "not a regular file")
	}
	_, _, err := Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, Gone(syscall.ESTALE), fs.ErrNotExist)
	require.Empty(t, AttributeOf(os.Stdin, "state"))
}

// TestWatchedNowhereElse: a directory without lockfs has nobody who watches, and without /proc nobody who could be asked.
func TestWatchedNowhereElse(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	require.NoError(t, err)
	require.False(t, Watched(f))
	require.NoError(t, f.Close())
	require.False(t, Watched(f), "no such file in /proc")
}
