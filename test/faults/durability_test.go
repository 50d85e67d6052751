package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// taken is what is known of a lock of clients/taker.py.
type taken struct {
	kind string
	last string // the last word of the log about it
}

func readTaken(t testing.TB, log string) map[string]*taken {
	t.Helper()
	text, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	locks := make(map[string]*taken)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if words[0] == "making" {
			locks[words[2]] = &taken{words[1], words[0]}
			continue
		}
		locks[words[1]].last = words[0]
	}
	return locks
}

// TestAllNodesKilledAtOnce kills all nodes while locks are being taken on each.
// Afterwards every lock that somebody was told to have is there, with what was
// written to it, and none that nobody was told about.
func TestAllNodesKilledAtOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	script := testcluster.ClientPath(t, "taker.py")
	logs := make(map[*testcluster.Node]string)
	for _, n := range c.Nodes {
		logs[n] = filepath.Join(c.Net.Dir(), n.Name+".taken")
	}
	orphans := testcluster.NewOrphans()
	for range testcluster.Faults(2) {
		require.Empty(t, c.Nodes[0].Host.MustRun(t, "sh", "-c", "rm -rf "+c.Path("*")+"; ls -A "+c.Mount))
		var takers []*hosts.Process
		for _, n := range c.Nodes {
			require.NoError(t, os.RemoveAll(logs[n]))
			takers = append(takers, n.Host.Start("python3", script, c.Mount, logs[n], n.Name))
		}
		hosts.Eventually(t, "many locks taken on each host", func() (string, bool) {
			var seen []string
			enough := true
			for _, n := range c.Nodes {
				count := len(readTaken(t, logs[n]))
				seen = append(seen, fmt.Sprintf("%s: %d", n.Name, count))
				enough = enough && count >= 60
			}
			return strings.Join(seen, ", "), enough
		})
		for _, n := range c.Nodes {
			n.Server.Signal(9)
		}
		for _, n := range c.Nodes {
			n.Kill()
		}
		for _, taker := range takers {
			require.Error(t, taker.Wait(), "%s", taker)
		}
		for _, n := range c.Nodes {
			n.Launch()
		}
		for _, n := range c.Nodes {
			n.AwaitReady(t)
		}
		for _, n := range c.Nodes {
			present := testcluster.ListDir(t, n, c.Mount)
			for _, of := range c.Nodes {
				seen := checkTaken(t, n, readTaken(t, logs[of]), present)
				if n == of {
					orphans.Found += seen
				}
			}
			require.Empty(t, present, "names that nobody made, seen on %s", n.Name)
			require.False(t, t.Failed(), "seen on %s", n.Name)
		}
	}
	orphans.RequireNone(t)
	c.RequireSameState(t)
}

// checkTaken checks some locks against what is present, and strikes them out there. It
// answers how many orphans it saw.
func checkTaken(t testing.TB, on *testcluster.Node, locks map[string]*taken, present map[string]string) (orphans int) {
	t.Helper()
	for name, lock := range locks {
		what, there := present[name]
		delete(present, name)
		whole := lock.kind + " held by " + name
		if lock.kind == "directory" {
			whole = "directory "
		}
		switch lock.last {
		case "making":
			if there {
				t.Logf("on %s: %s is there (%q), and its taker was not told", on.Name, name, what)
				orphans++
			}
		case "removed":
			assert.False(t, there, "on %s: %s is there (%q), after it was removed", on.Name, name, what)
		case "made":
			assert.Contains(t, []string{whole, "file "}, what, "on %s: %s was made", on.Name, name)
		case "written":
			assert.Equal(t, whole, what, "on %s: %s was reported taken", on.Name, name)
		case "removing":
			assert.Contains(t, []string{whole, ""}, what, "on %s: %s was being removed", on.Name, name)
		}
	}
	return orphans
}

// TestOneNodeKilled is the same promise where there is nobody else to ask.
func TestOneNodeKilled(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	n := c.Nodes[0]
	n.Host.MustRun(t, "sh", "-c", "set -C; echo held > "+c.Path("lock"))
	n.Kill()
	c.AwaitDeadMount(t, n.Host)
	n.Start(t)
	require.Equal(t, "held\n", n.Host.MustRun(t, "cat", c.Path("lock")))
	_, err := n.Host.Run("sh", "-c", "set -C; echo stolen > "+c.Path("lock"))
	require.Error(t, err)
	require.Equal(t, 1, testcluster.CountMounts(t, n.Host, c.Mount), "the dead mount was cleaned up")
}
