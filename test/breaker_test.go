package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// takeoversAtLeast would have about ten errors were all removed that is not what was looked at: every third would end with one, and
// every sixtieth with two holders.
var takeoversAtLeast = rounds(40, 200)

// inContainer starts a worker with a pid namespace of its own. It has its locks for so long that one is broken, if it can be,
// which somebody has.
var inContainer = []string{"env", "STAY=0.1", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}

// TestBreakerRace has workers on four hosts break the locks of crashed holders. On the local disk they
// remove each other's, and have them at the same time.
func TestBreakerRace(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	g := c.addGuest(t, "m")
	g.start(t)
	on := append(c.hosts(), g.host)
	on = append(on, on...)
	for _, format := range []string{"semaphore", "pid", "line", "mkdir", "creator"} {
		t.Run(format, func(t *testing.T) { c.breakerRace(t, nil, format, takeoversAtLeast, on...) })
	}
	c.requireSameState(t)
}

// TestBreakerRaceOfContainers is of workers with pid namespaces of their own, on one host: what a pid means to one
// it does not mean to another.
func TestBreakerRaceOfContainers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "m")
	g.start(t)
	for _, format := range []string{"pid", "mkdir"} {
		t.Run(format, func(t *testing.T) {
			c.breakerRace(t, inContainer, format, takeoversAtLeast, g.host, g.host, g.host)
		})
	}
}

// breakerRace has workers race on the local disk, until two have a lock at the same time, and then on the mount.
func (c *cluster) breakerRace(t *testing.T, before []string, format string, takeovers int, on ...*hosts.Host) {
	t.Helper()
	disk := filepath.Join(c.net.Dir(), format)
	require.NoError(t, os.Mkdir(disk, 0o755))
	b := startBreakers(t, before, format, disk, disk+".disk-witness", on...)
	hosts.Eventually(t, "two holders of one lock on the local disk", func() (string, bool) {
		faults := strings.Join(b.overlaps(t), "\n")
		return faults, strings.Contains(faults, "while inside")
	})
	b.stop(t)

	dir := c.path(format)
	on[0].MustRun(t, "mkdir", dir)
	switch format {
	case "semaphore":
		c.nodes[0].set(t, format+"/*", "--stale-after", "1s")
	case "creator":
		c.nodes[0].set(t, format+"/*", "--holder", "creator")
	}
	refused := c.nodes[0].refusals(t)
	b = startBreakers(t, before, format, dir, disk+".witness", on...)
	b.awaitTakeovers(t, faults(takeovers))
	hosts.Eventually(t, "removals that are refused", func() (string, bool) {
		now := c.nodes[0].refusals(t)
		return fmt.Sprint(now), now > refused
	})
	require.Empty(t, b.stop(t))
	require.Empty(t, b.overlaps(t))
}

// TestContainersDoNotBreakEachOthersLocks has a container hold a lock by a pid that means nothing in another. Where it can be
// judged, on the host that the container is on, it can be removed.
func TestContainersDoNotBreakEachOthersLocks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	g := c.addGuest(t, "m")
	g.start(t)
	container := func(script string) []string {
		return append(slices.Clone(inContainer), "sh", "-c", script, "sh", c.path("lock"))
	}
	for _, remove := range []string{`rm "$1"`, `echo mine > "$1"`, `echo mine > "$1.new"; mv "$1.new" "$1"`, `mv "$1" "$1.old"`} {
		start := container(`set -C; echo $$ > "$1" && echo held; sleep 1000`)
		holder := g.host.Start(start[0], start[1:]...)
		require.NoError(t, holder.WaitOutput("held\n"))
		other := container("exec 2>&1; " + remove)
		said, err := g.host.Run(other[0], other[1:]...)
		require.Error(t, err, "%s", remove)
		require.Contains(t, said, "busy", "%s", remove)
		require.Equal(t, "1\n", g.host.MustRun(t, "cat", c.path("lock")), "%s", remove)
		g.host.MustRun(t, "rm", c.path("lock"))
		holder.Kill()
	}
}
