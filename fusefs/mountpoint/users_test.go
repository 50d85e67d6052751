package mountpoint

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUsersOfAMount looks for programs that use a file system in each way, for which any is good that is mounted everywhere.
func TestUsersOfAMount(t *testing.T) {
	of := func(pid int) []User {
		users, err := Users("/proc")
		require.NoError(t, err)
		return slices.DeleteFunc(users, func(u User) bool { return u.PID != pid })
	}
	for script, uses := range map[string]string{
		`cd /proc; echo; read x`:                        "its working directory",
		`cd /proc/sys; echo; read x`:                    "its working directory",
		`cd /; exec 3< /proc/version; echo; read x`:     "has /proc/version open",
		`cd /; read v < /proc/version; echo; read x`:    "",
		`cd "$HOME" 2> /dev/null || cd /; echo; read x`: "",
	} {
		program := exec.Command("sh", "-c", script)
		stdin, err := program.StdinPipe()
		require.NoError(t, err)
		stdout, err := program.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		_, err = bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		if uses == "" {
			require.Empty(t, of(program.Process.Pid), script)
		} else {
			require.Equal(t, []User{{program.Process.Pid, "sh", uses}}, of(program.Process.Pid), script)
		}
		require.NoError(t, stdin.Close())
		_ = program.Wait()
	}
	version, err := os.Open("/proc/version")
	require.NoError(t, err)
	defer version.Close()
	require.Empty(t, of(os.Getpid()), "this process itself is not meant")

	users, err := Users("/no such mount")
	require.NoError(t, err)
	require.Empty(t, users)
}
