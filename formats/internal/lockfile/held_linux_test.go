package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var errHeld = errors.New("held")

// judge takes a content of "old" for stale.
func judge(content []byte, _ *os.File) error {
	if string(content) != "old" {
		return errHeld
	}
	return nil
}

func content(text string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(text), nil }
}

// TestTakeIsForOne: of many who find no lock, or a stale one, one gets it.
func TestTakeIsForOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	for _, before := range []string{"", "old"} {
		_ = os.Remove(path)
		if before != "" {
			require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		}
		var taken atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				held, err := Take(t.Context(), path, 0o600, judge, content("new"))
				if err == nil {
					taken.Add(1)
					held.Close()
				} else if !errors.Is(err, errHeld) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, taken.Load())
	}
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func take(t *testing.T) (*Held, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.lock")
	held, err := Take(t.Context(), path, 0o600, judge, content("mine"))
	require.NoError(t, err)
	t.Cleanup(held.Close)
	require.Empty(t, held.Token())
	require.Equal(t, path, held.Path())
	return held, path
}

func TestHeldRewritesAndReleases(t *testing.T) {
	held, path := take(t)
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, held.Check(t.Context()))
	require.NoError(t, held.Rewrite(t.Context(), []byte("MINE")))
	require.NoError(t, held.Check(t.Context()))
	require.ErrorContains(t, held.Rewrite(t.Context(), []byte("longer")), "6 bytes")
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "MINE", string(now))
	require.NoError(t, held.Release(t.Context()))
	require.NoFileExists(t, path)
}

// TestHeldKnowsItsFile: what has the same content is not the same lock. Nothing of it is touched.
func TestHeldKnowsItsFile(t *testing.T) {
	for name, lose := range map[string]struct {
		do   func(path string) error
		how  string
		left string
	}{
		"removed":                    {os.Remove, "another program removed", ""},
		"removed with its directory": {func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, "another program removed", ""},
		"replaced": {func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("mine"), 0o600))
		}, "another program replaced", "mine"},
		"replaced by a directory": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "another program replaced", ""},
		"overwritten":             {func(path string) error { return os.WriteFile(path, []byte("others"), 0o600) }, "another program overwrote", "others"},
	} {
		t.Run(name, func(t *testing.T) {
			held, path := take(t)
			require.NoError(t, lose.do(path))
			for _, err := range []error{
				held.Check(t.Context()), held.Rewrite(t.Context(), []byte("MINE")), held.Release(t.Context()),
			} {
				var lost *LostError
				require.ErrorAs(t, err, &lost)
				require.ErrorContains(t, err, lose.how+" "+path)
			}
			left, _ := os.ReadFile(path)
			require.Equal(t, lose.left, string(left))
		})
	}
}

// TestHeldAfterAWriteOfWhichNobodyKnows: its outcome is found out by the next look.
func TestHeldAfterAWriteOfWhichNobodyKnows(t *testing.T) {
	for _, done := range []string{"mine", "MINE"} {
		held, path := take(t)
		held.pending = []byte("MINE")
		require.NoError(t, os.WriteFile(path, []byte(done), 0o600))
		require.NoError(t, held.Check(t.Context()))
		require.Equal(t, done, string(held.content))
		require.NoError(t, held.Rewrite(t.Context(), []byte("next")))
	}
}

// TestHeldWhereNothingIsMounted has the directory on a file system of another type than the lock was on.
func TestHeldWhereNothingIsMounted(t *testing.T) {
	held, path := take(t)
	held.kind++
	require.NoError(t, os.Remove(path))
	err := held.Check(t.Context())
	var lost *LostError
	require.False(t, errors.As(err, &lost))
	require.ErrorContains(t, err, "not mounted")
}

// TestHeldOnAMountIsComparedByInode: on a mount of lockfs the file is not kept open, and a file without a token may be
// anything, also data in the place of the lock.
func TestHeldOnAMountIsComparedByInode(t *testing.T) {
	held, path := take(t)
	var err error
	held.inode, err = inodeOf(held.file)
	require.NoError(t, err)
	held.token = "7"
	require.NoError(t, held.Check(t.Context()), "this file system has no tokens to compare")
	held.kind++
	require.ErrorContains(t, held.Check(t.Context()), "not mounted")
	held.kind--
	require.NoError(t, os.WriteFile(path+".data", []byte("mine"), 0o600))
	require.NoError(t, os.Rename(path+".data", path))
	var lost *LostError
	require.ErrorAs(t, held.Check(t.Context()), &lost)
	require.ErrorContains(t, held.Release(t.Context()), "replaced")
	require.FileExists(t, path)
}

func TestHoldOfWhatIsSomebodyElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.lock")
	var lost *LostError
	_, err := Hold(t.Context(), path, []byte("mine"))
	require.ErrorAs(t, err, &lost)
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o600))
	_, err = Hold(t.Context(), path, []byte("mine"))
	require.ErrorAs(t, err, &lost)
	require.FileExists(t, path)
}
