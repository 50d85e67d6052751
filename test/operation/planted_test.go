package operation

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// nobody is the command line of another user, who has no rights.
func nobody(args ...string) []string {
	return append([]string{"--reuid", "65534", "--regid", "65534", "--clear-groups"}, args...)
}

// TestABackupFollowsNothingThatAnotherUserHasPlanted in the directory that root writes it to: neither a link under a temporary name, nor a file
// that is open to all.
func TestABackupFollowsNothingThatAnotherUserHasPlanted(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 1)
	a := c.Nodes[0]
	dir, victim := filepath.Join(c.Net.Dir(), "shared"), filepath.Join(c.Net.Dir(), "victim")
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chown(dir, 65534, 65534))
	require.NoError(t, os.WriteFile(victim, []byte("as it was"), 0o600))
	file := filepath.Join(dir, "locks.backup")
	a.Host.MustRun(t, "setpriv", nobody("sh", "-ec", `ln -s "$1" "$2.part"; ln -s "$1" "$2.tmp"; echo > "$2"; chmod 666 "$2"`, "sh", victim, file)...)
	_, err := a.Lockfs("backup", file)
	require.NoError(t, err)
	content, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "as it was", string(content))
	info, err := os.Lstat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Zero(t, info.Sys().(*syscall.Stat_t).Uid)
	_, err = a.Host.Run("setpriv", nobody("cat", file)...)
	require.ErrorContains(t, err, "Permission denied")
	a.Host.MustRun(t, c.Program, "backup", "verify", file)
}

// TestUpFollowsNothingThatAnotherUserHasPlanted on the mount under the name of the file by which lockfs up finds out whether the cluster answers.
// Nor can such a file keep lockfs up from ending.
func TestUpFollowsNothingThatAnotherUserHasPlanted(t *testing.T) {
	t.Parallel()
	a := newUpHost(t, hosts.New(t), "a")
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(a.mount)), 0o755))
	a.MustRun(t, "ln", "-s", "/mnt/planted", "/var/log/lockfs.log")
	_, err := a.lockfs("up", "--bootstrap")
	require.ErrorContains(t, err, "/var/log/lockfs.log is a symbolic link")
	a.MustRun(t, "rm", "/var/log/lockfs.log")
	a.mustLockfs(t, "up", "--bootstrap")
	probed := filepath.Join(a.mount, ".lockfs-up-a")
	for _, plant := range []string{
		`ln -s /mnt/planted "$1"`,
		`mkfifo "$1"`,
		`mkdir "$1"`,
		`echo > "$1"; chmod 666 "$1"`,
	} {
		a.MustRun(t, "setpriv", nobody("sh", "-ec", plant, "sh", probed)...)
		a.mustLockfs(t, "up")
		a.MustRun(t, "rm", "-rf", probed)
	}
	a.MustRun(t, "test", "!", "-e", "/mnt/planted")
	a.mustLockfs(t, "down")
}
