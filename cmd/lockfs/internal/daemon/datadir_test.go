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

func TestSessionFilesOfDifferentMountsDiffer(t *testing.T) {
	seen := make(map[string]string)
	for _, m := range []struct{ host, dir string }{
		{"h", "/a-b"}, {"h", "/a/b"}, {"h-a", "/b"}, {"h", "/a,b"}, {"h,%2Fa", "/b"}, {"h", "/a%2Fb"}, {"h/x", "/y"},
		{"h", "/" + longName("x")}, {"h", "/" + longName("y")},
	} {
		name := sessionFileName(m.host, m.dir)
		require.Empty(t, seen[name], "%v has the name of another: %s", m, name)
		require.NotContains(t, name, "/")
		require.LessOrEqual(t, len(name), 240)
		seen[name] = m.dir
	}
	require.Equal(t, "h,%2Fa%2Fb.session", sessionFileName("h", "/a/b"))
}

func longName(end string) string {
	name := make([]byte, 300)
	for i := range name {
		name[i] = 'n'
	}
	return string(name) + end
}
