package lockfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
)

func writeAged(t *testing.T, path string, age time.Duration) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	at := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(path, at, at))
	return path
}

// TestCreateRemovesLeftovers: the temporary files of killed processes, and nothing else.
func TestCreateRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	temporary := func() string { return filepath.Join(dir, lockfact.TemporaryName()) }
	left := []string{writeAged(t, temporary(), 2*leftoverAge), writeAged(t, temporary(), leftoverAge+time.Minute)}
	stays := []string{
		writeAged(t, temporary(), leftoverAge/2), // of a process that may be slow
		writeAged(t, filepath.Join(dir, ".lockfs-mine"), 2*leftoverAge),
		writeAged(t, filepath.Join(dir, "old.lock"), 2*leftoverAge),
		writeAged(t, filepath.Join(dir, "a.lock.0123456789abcdef.tmp"), 2*leftoverAge), // which tower sweeps
	}
	directory := temporary()
	require.NoError(t, os.Mkdir(directory, 0o700))
	require.NoError(t, os.Chtimes(directory, time.Unix(1, 0), time.Unix(1, 0)))

	unlock, err := LockDir(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, Create(filepath.Join(dir, "first.lock"), []byte("x"), 0o600))
	for _, path := range left {
		require.FileExists(t, path, "it may be a lock that is being removed by who has the directory's lock")
	}
	unlock()
	require.NoError(t, Create(filepath.Join(dir, "next.lock"), []byte("x"), 0o600))
	for _, path := range left {
		require.NoFileExists(t, path)
	}
	for _, path := range append(stays, filepath.Join(dir, "first.lock")) {
		require.FileExists(t, path)
	}
	require.DirExists(t, directory)
}

// TestSweepTakesTheTimeFromTheFileSystem: by this host's clock, which is wrong, the other file is there for two hours.
func TestSweepTakesTheTimeFromTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	ours := func(name string) bool { return name == "temporary" }
	temporary := writeAged(t, filepath.Join(dir, "temporary"), 2*leftoverAge)
	made := writeAged(t, filepath.Join(dir, "t.lock"), 2*leftoverAge)
	Sweep(made, time.Now(), ours)
	require.FileExists(t, temporary)
	Sweep(writeAged(t, made, 0), time.Now(), ours)
	require.NoFileExists(t, temporary)
	require.FileExists(t, made)
}

// TestCreateNamesTheLock and not a file of which nobody has heard.
func TestCreateNamesTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "t.lock")
	require.EqualError(t, Create(path, nil, 0o600), "open "+path+": no such file or directory")
}

func TestCheckSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	for size, problem := range map[int]string{0: "", MaxContent: "", MaxContent + 7: "too large: it has 262151 bytes, and a lock has at most 262144"} {
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		f, content, err := Open(path)
		require.NoError(t, err)
		if err := CheckSize(content, f); problem == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, problem)
		}
		require.NoError(t, f.Close())
	}
}
