package process

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestHostname(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	cat := start(t, exec.Command("cat"))
	name, err := Hostname(cat.pid())
	require.NoError(t, err)
	require.Equal(t, own, name)

	container := start(t, exec.Command("unshare", "-u", "sh", "-c", "hostname elsewhere; echo 1; cat"))
	container.numbers()
	other := startChild(t, unix.CLONE_NEWUTS, "hostname", "another")
	other.numbers()
	for range 50 {
		name, err = Hostname(container.pid())
		require.NoError(t, err)
		require.Equal(t, "elsewhere", name)
		name, err = Hostname(other.pid())
		require.NoError(t, err)
		require.Equal(t, "another", name)
	}

	// No thread of ours is left there.
	link, err := os.Readlink("/proc/self/ns/uts")
	require.NoError(t, err)
	eventually(t, func() bool {
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, task := range tasks {
			of, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/uts")
			if err == nil && of != link {
				return false
			}
		}
		return true
	})
	out, err := exec.Command("uname", "-n").Output()
	require.NoError(t, err)
	require.Equal(t, own+"\n", string(out))
}

// TestHostnameFromTheMainThread is about the one thread that cannot end.
func TestHostnameFromTheMainThread(t *testing.T) {
	other := startChild(t, unix.CLONE_NEWUTS, "hostname", "another")
	other.numbers()
	line, err := startChild(t, 0, "ask", strconv.Itoa(other.pid())).stdout.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "true\n", line)
}

func TestHostnameUnknown(t *testing.T) {
	ended := start(t, exec.Command("cat"))
	ended.end()
	for _, thread := range []int{0, -1, ended.pid()} {
		_, err := Hostname(thread)
		require.ErrorIs(t, err, ErrUnknown)
	}
}
