// Package hostileuser runs an ordinary user that takes as much of a cluster as possible, while witnesses do
// ordinary work as other users, on the same host and on others. A judge decides from their observations
// whether the user took anything from them.
package hostileuser

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// Dir creates a directory of the mount in which all users may create names.
func Dir(t testing.TB, c *testcluster.Cluster, on *hosts.Host, name string) string {
	t.Helper()
	reach(t, c)
	dir := c.Path(name)
	on.MustRun(t, "mkdir", "-m", "1777", dir)
	return dir
}

// reach gives all users access to the mount.
func reach(t testing.TB, c *testcluster.Cluster) {
	t.Helper()
	for _, dir := range []string{c.Net.Dir(), filepath.Dir(c.Net.Dir())} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
}

// start starts a Python program of test/clients as an ordinary user. The user may not be able to read the
// program's file, so it gets a copy in the directory shared by all hosts.
func start(t testing.TB, on *hosts.Host, uid, client string, args ...string) *hosts.Process {
	t.Helper()
	copied := filepath.Join(on.Net().Dir(), client)
	if _, err := os.Stat(copied); err != nil {
		text, err := os.ReadFile(testcluster.ClientPath(t, client))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied, text, 0o644))
	}
	return on.Start("setpriv", append([]string{"--reuid", uid, "--regid", uid, "--clear-groups", "/usr/bin/python3", copied}, args...)...)
}

// The users.
const (
	HostileUID = "1000"
	WitnessUID = "1001"
	// AccompliceUID is another hostile user.
	AccompliceUID = "1002"
)

// User is the process of a hostile user.
type User struct {
	Process *hosts.Process
	dir     string
}

// Start starts a hostile user below a directory of [Dir]. The ways are those of clients/hostile.py.
func Start(t testing.TB, on *hosts.Host, uid, dir, way string, numbers ...string) *User {
	t.Helper()
	own := dir + "/hostile-" + uid + "-" + way
	return &User{start(t, on, uid, "hostile.py", append([]string{own, way}, numbers...)...), own}
}

// Begun waits until the user has taken everything it can get, and returns the amounts. In a long run this may
// take minutes.
func (u *User) Begun(t testing.TB) string {
	t.Helper()
	const word = "begun: "
	for tries := 1; ; tries++ {
		err := u.Process.WaitOutput(word)
		if err == nil {
			break
		}
		if tries < testcluster.Rounds(1, 10) && !u.ended() {
			continue
		}
		require.NoError(t, err)
	}
	hosts.Eventually(t, "the whole line", func() (string, bool) {
		_, rest, _ := strings.Cut(u.Process.Stdout(), word)
		return rest, strings.Contains(rest, "\n")
	})
	_, rest, _ := strings.Cut(u.Process.Stdout(), word)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func (u *User) ended() bool {
	select {
	case <-u.Process.Ended():
		return true
	default:
		return false
	}
}

// End kills the user.
func (u *User) End() { u.Process.Signal(syscall.SIGKILL) }

// EndAndForget kills the user, waits for its end, and removes its files as root of a host.
func (u *User) EndAndForget(t testing.TB, root *hosts.Host) {
	t.Helper()
	u.Process.Kill()
	root.MustRun(t, "rm", "-rf", u.dir)
}
