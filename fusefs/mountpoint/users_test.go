package mountpoint

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestUsersOfAMount looks for programs that use a file system of any kind in each way.
func TestUsersOfAMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root")
	}
	dir := t.TempDir()
	users, err := Users(dir)
	require.NoError(t, err)
	require.Empty(t, users, "nothing is mounted there")

	require.NoError(t, unix.Mount("test", dir, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	other := t.TempDir()
	require.NoError(t, unix.Mount(dir, other, "", unix.MS_BIND, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(other, 0)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644))

	for script, uses := range map[string]string{
		`cd "$0"; echo; read x`:           "its working directory",
		`exec 3< "$0/file"; echo; read x`: "has " + filepath.Join(dir, "file") + " open",
		`exec 3< "$1/file"; echo; read x`: "has " + filepath.Join(other, "file") + " open",
		`echo; read x`:                    "",
	} {
		program := exec.Command("sh", "-c", script, dir, other)
		stdin, err := program.StdinPipe()
		require.NoError(t, err)
		stdout, err := program.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		_, err = bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		users, err := Users(dir)
		require.NoError(t, err)
		if uses == "" {
			require.Empty(t, users, script)
		} else {
			require.Equal(t, []User{{program.Process.Pid, "sh", uses}}, users, script)
		}
		require.NoError(t, stdin.Close())
		_ = program.Wait()
	}
	// This process itself is not meant.
	open, err := os.Open(filepath.Join(dir, "file"))
	require.NoError(t, err)
	defer open.Close()
	users, err = Users(dir)
	require.NoError(t, err)
	require.Empty(t, users)
}
