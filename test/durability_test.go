package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
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
	c := startCluster(t, 3)
	script := ClientPath(t, "taker.py")
	logs := make(map[*node]string)
	for _, n := range c.nodes {
		logs[n] = filepath.Join(c.net.Dir(), n.name+".taken")
	}
	orphans := newOrphans()
	for range faults(2) {
		require.Empty(t, c.nodes[0].host.MustRun(t, "sh", "-c", "rm -rf "+c.path("*")+"; ls -A "+c.mount))
		var takers []*hosts.Process
		for _, n := range c.nodes {
			require.NoError(t, os.RemoveAll(logs[n]))
			takers = append(takers, n.host.Start("python3", script, c.mount, logs[n], n.name))
		}
		hosts.Eventually(t, "many locks taken on each host", func() (string, bool) {
			var seen []string
			enough := true
			for _, n := range c.nodes {
				count := len(readTaken(t, logs[n]))
				seen = append(seen, fmt.Sprintf("%s: %d", n.name, count))
				enough = enough && count >= 60
			}
			return strings.Join(seen, ", "), enough
		})
		for _, n := range c.nodes {
			n.server.Signal(9)
		}
		for _, n := range c.nodes {
			n.kill()
		}
		for _, taker := range takers {
			require.Error(t, taker.Wait(), "%s", taker)
		}
		for _, n := range c.nodes {
			n.launch()
		}
		for _, n := range c.nodes {
			n.awaitReady(t)
		}
		for _, n := range c.nodes {
			present := list(t, n, c.mount)
			for _, of := range c.nodes {
				seen := checkTaken(t, n, readTaken(t, logs[of]), present)
				if n == of {
					orphans.found += seen
				}
			}
			require.Empty(t, present, "names that nobody made, seen on %s", n.name)
			require.False(t, t.Failed(), "seen on %s", n.name)
		}
	}
	orphans.requireNone(t)
	c.requireSameState(t)
}

// checkTaken checks some locks against what is present, and strikes them out there. It
// answers how many orphans it saw.
func checkTaken(t testing.TB, on *node, locks map[string]*taken, present map[string]string) (orphans int) {
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
				t.Logf("on %s: %s is there (%q), and its taker was not told", on.name, name, what)
				orphans++
			}
		case "removed":
			assert.False(t, there, "on %s: %s is there (%q), after it was removed", on.name, name, what)
		case "made":
			assert.Contains(t, []string{whole, "file "}, what, "on %s: %s was made", on.name, name)
		case "written":
			assert.Equal(t, whole, what, "on %s: %s was reported taken", on.name, name)
		case "removing":
			assert.Contains(t, []string{whole, ""}, what, "on %s: %s was being removed", on.name, name)
		}
	}
	return orphans
}

// TestOneNodeKilled is the same promise where there is nobody else to ask.
func TestOneNodeKilled(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	n := c.nodes[0]
	n.host.MustRun(t, "sh", "-c", "set -C; echo held > "+c.path("lock"))
	n.kill()
	c.awaitDeadMount(t, n.host)
	n.start(t)
	require.Equal(t, "held\n", n.host.MustRun(t, "cat", c.path("lock")))
	_, err := n.host.Run("sh", "-c", "set -C; echo stolen > "+c.path("lock"))
	require.Error(t, err)
	require.Equal(t, 1, mounts(t, n.host, c.mount), "the dead mount was cleaned up")
}
