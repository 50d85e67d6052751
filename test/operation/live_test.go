package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// terminal is a command on a terminal of 24 lines and 120 columns.
type terminal struct {
	*hosts.Process
	keys *os.File
}

func openTerminal(t testing.TB, c *testcluster.Cluster, n *testcluster.Node, name string, args ...string) *terminal {
	t.Helper()
	fifo := filepath.Join(c.Net.Dir(), "keys-of-"+name)
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	keys, err := os.OpenFile(fifo, os.O_RDWR, 0) // which waits for no reader
	require.NoError(t, err)
	t.Cleanup(func() { _ = keys.Close() })
	command := strings.Join(append([]string{"exec", "env", "TERM=xterm-256color", c.Program}, append(args, n.Asked()...)...), " ")
	shown := n.Host.Start("sh", "-c", `exec script -qefc "stty rows 24 cols 120; $1" /dev/null < "$2"`, "sh", command, fifo)
	return &terminal{shown, keys}
}

// press types keys.
func (tt *terminal) press(t testing.TB, keys string) {
	t.Helper()
	_, err := tt.keys.WriteString(keys)
	require.NoError(t, err)
}

// TestLocksAreShownLive on terminals on which they are looked at before they are taken.
func TestLocksAreShownLive(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	watch := openTerminal(t, c, a, "watch", "locks", "--watch")
	require.NoError(t, watch.WaitOutput(", 0 locks"))
	top := openTerminal(t, c, a, "top", "top")
	for _, text := range []string{"leader a", "quorum: 1 of 1 answer", "unreachable hosts: none", "alarms: none", "[1 locks]"} {
		require.NoError(t, top.WaitOutput(text))
	}
	require.NotContains(t, top.Log(), "deploy.lock")

	a.Host.MustRun(t, "sh", "-c", fmt.Sprintf("set -C; date > %s", c.Path("deploy.lock")))
	for _, shown := range []*terminal{top, watch} {
		require.NoError(t, shown.WaitOutput("deploy.lock"))
	}
	a.Host.MustRun(t, "rm", c.Path("deploy.lock"))
	hosts.Eventually(t, "it is gone", func() (string, bool) {
		return watch.Log(), strings.Count(watch.Log(), ", 0 locks") == 2
	})
	top.press(t, "2")
	require.NoError(t, top.WaitOutput("lock_released"))
	top.press(t, "4")
	require.NoError(t, top.WaitOutput("COMMIT"))

	top.press(t, "q")
	require.NoError(t, top.Wait())
	require.NotRegexp(t, `\x1b\[[0-9;]*[1-9][0-9;]*m`, top.Log(), "there are no colours")
	watch.press(t, "\x03")
	require.NoError(t, watch.Wait())
}
