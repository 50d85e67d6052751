package primitives

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// takeoversAtLeast would have about ten errors were all removed that is not what was looked at: every third would end with one, and
// every sixtieth with two holders.
var takeoversAtLeast = testcluster.Rounds(40, 200)

// inContainer starts a worker with a pid namespace of its own. It has its locks for so long that one is broken, if it can be,
// which somebody has.
var inContainer = []string{"env", "STAY=0.1", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}

// TestBreakerRace has workers on four hosts break the locks of crashed holders. On the local disk they
// remove each other's, and have them at the same time.
func TestBreakerRace(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Start(t)
	on := append(c.Hosts(), g.Host)
	on = append(on, on...)
	formats := []string{"semaphore", "pid", "mkdir", "creator"}
	if testcluster.Long() {
		formats = append(formats, "line")
	}
	for _, format := range formats {
		t.Run(format, func(t *testing.T) { breakerRace(t, c, nil, format, takeoversAtLeast, on...) })
	}
	c.RequireSameState(t)
}

// TestBreakerRaceOfContainers is of workers with pid namespaces of their own, on one host: what a pid means to one
// it does not mean to another.
func TestBreakerRaceOfContainers(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	for _, format := range []string{"pid", "mkdir"} {
		t.Run(format, func(t *testing.T) {
			breakerRace(t, c, inContainer, format, takeoversAtLeast, g.Host, g.Host, g.Host)
		})
	}
}

// breakerRace has workers race on the local disk, until two have a lock at the same time, and then on the mount.
func breakerRace(t *testing.T, c *testcluster.Cluster, before []string, format string, takeovers int, on ...*hosts.Host) {
	t.Helper()
	disk := filepath.Join(c.Net.Dir(), format)
	require.NoError(t, os.Mkdir(disk, 0o755))
	b := testcluster.StartBreakers(t, before, format, disk, disk+".disk-witness", on...)
	hosts.Eventually(t, "two holders of one lock on the local disk", func() (string, bool) {
		faults := strings.Join(b.Overlaps(t), "\n")
		return faults, strings.Contains(faults, "while inside")
	})
	b.Stop(t)

	dir := c.Path(format + ".locks") // names in it are locks
	on[0].MustRun(t, "mkdir", dir)
	switch format {
	case "semaphore":
		c.Nodes[0].SetRule(t, format+".locks/*", "--stale-after", "1s")
	case "creator":
		c.Nodes[0].SetRule(t, format+".locks/*", "--holder", "creator", "--any-file")
	}
	refused := c.Nodes[0].Refusals(t)
	b = testcluster.StartBreakers(t, before, format, dir, disk+".witness", on...)
	b.AwaitTakeovers(t, testcluster.Faults(takeovers))
	hosts.Eventually(t, "removals that are refused", func() (string, bool) {
		now := c.Nodes[0].Refusals(t)
		return fmt.Sprint(now), now > refused
	})
	require.Empty(t, b.Stop(t))
	require.Empty(t, b.Overlaps(t))
}

// TestContainersDoNotBreakEachOthersLocks has a container hold a lock by a pid that means nothing in another. Where it can be
// judged, on the host that the container is on, it can be removed.
func TestContainersDoNotBreakEachOthersLocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g := c.AddGuest(t, "m")
	g.Start(t)
	container := func(script string) []string {
		return append(slices.Clone(inContainer), "sh", "-c", script, "sh", c.Path("lock"))
	}
	for _, remove := range []string{`rm "$1"`, `echo mine > "$1"`, `echo mine > "$1.new"; mv "$1.new" "$1"`, `mv "$1" "$1.old"`} {
		start := container(`set -C; echo $$ > "$1" && echo held; sleep 1000`)
		holder := g.Host.Start(start[0], start[1:]...)
		require.NoError(t, holder.WaitOutput("held\n"))
		other := container("exec 2>&1; " + remove)
		said, err := g.Host.Run(other[0], other[1:]...)
		require.Error(t, err, "%s", remove)
		require.Contains(t, said, "busy", "%s", remove)
		require.Equal(t, "1\n", g.Host.MustRun(t, "cat", c.Path("lock")), "%s", remove)
		g.Host.MustRun(t, "rm", c.Path("lock"))
		holder.Kill()
	}
}
