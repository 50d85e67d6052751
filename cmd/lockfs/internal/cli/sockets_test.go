package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSocketPaths(t *testing.T) {
	t.Setenv(SocketDirVariable, "/run/lockfs")
	require.Equal(t, "/run/lockfs/server-a.sock", ServerSocket("a"))
	require.Equal(t, "/run/lockfs/mount-locks.sock", MountSocket("/locks"))
	require.Equal(t, "/run/lockfs/dev-home-x-my%20locks.sock", DevSocket("/home/x/my locks"))
	require.NotEqual(t, MountSocket("/mnt/locks"), MountSocket("/mnt-locks"))

	long := "/" + strings.Repeat("x", 200)
	require.LessOrEqual(t, len(MountSocket(long)), longestSocketPath)
	require.NotEqual(t, MountSocket(long), MountSocket(long+"y"))
	require.Equal(t, 1, socketKind(filepath.Base(MountSocket(long))))
}

func TestSocketsAreFoundInOrder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(SocketDirVariable, filepath.Join(dir, "sockets"))
	found, err := Sockets()
	require.NoError(t, err, "no directory")
	require.Empty(t, found)

	require.NoError(t, MakeSocketDir())
	require.NoError(t, MakeSocketDir())
	want := []string{ServerSocket("z"), MountSocket("/a"), MountSocket("/locks"), DevSocket("/a")}
	for _, path := range []string{want[3], want[1], want[2], want[0], filepath.Join(OwnSocketDir(), "other.sock")} {
		listener, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer listener.Close()
	}
	require.NoError(t, os.WriteFile(MountSocket("/no-socket"), nil, 0o644))
	found, err = Sockets()
	require.NoError(t, err)
	require.Equal(t, want, found)

	require.NoError(t, os.Chmod(OwnSocketDir(), 0o777))
	found, err = Sockets()
	require.NoError(t, err)
	require.Empty(t, found, "anybody could have put them there")
	require.Error(t, MakeSocketDir())
}

// TestSocketsOfOthersAreNotFound has somebody else make the directory first, or a link to one.
func TestSocketsOfOthersAreNotFound(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "real")
	t.Setenv(SocketDirVariable, there)
	require.NoError(t, MakeSocketDir())
	listener, err := net.Listen("unix", ServerSocket("a"))
	require.NoError(t, err)
	defer listener.Close()

	t.Setenv(SocketDirVariable, filepath.Join(dir, "link"))
	require.NoError(t, os.Symlink(there, OwnSocketDir()))
	found, err := Sockets()
	require.NoError(t, err)
	require.Empty(t, found, "who has made the link can make it another one")
	require.Error(t, MakeSocketDir())

	t.Setenv(SocketDirVariable, filepath.Join(there, "a file", "lockfs"))
	require.NoError(t, os.WriteFile(filepath.Join(there, "a file"), nil, 0o600))
	found, err = Sockets()
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestADirectoryThatIsGivenKeepsItsMode(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(SocketDirVariable, dir)
	require.NoError(t, os.Chmod(dir, 0o711))
	require.NoError(t, MakeSocketDir())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o711), info.Mode().Perm())
}
