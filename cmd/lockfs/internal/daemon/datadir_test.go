package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDataBelowTheMountIsRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Chdir(dir)
	require.NoError(t, os.MkdirAll("real/locks", 0o755))
	require.NoError(t, os.Symlink("real", "link"))
	require.NoError(t, os.Symlink(filepath.Join(dir, "link/locks/data"), "far"))
	require.NoError(t, os.Symlink("loop", "loop"))
	for _, c := range []struct {
		data, mount string
		refused     bool
	}{
		{"real/locks", "real/locks", true},
		{"real/locks/data", "real/locks", true},
		{"real/locks/new/data", "link/locks", true},
		{"link/locks/../locks/data", "real/locks", true},
		{"far", "real/locks", true},
		{"far/data", "link/locks", true},
		{"real/locks.data", "real/locks", false},
		{"real", "real/locks", false},
		{"real/locks/../data", "real/locks", false},
		{"new/data", "new/locks", false},
		{"new/locks/data", "new/locks", true},
	} {
		err := refuseBelow("data directory", "--data", c.data, c.mount)
		require.Equal(t, c.refused, err != nil, "%+v: %v", c, err)
	}
	require.ErrorContains(t, refuseBelow("data directory", "--data", "loop", "real/locks"), "too many levels of symbolic links")
}
