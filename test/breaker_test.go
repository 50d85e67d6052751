package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// breakers are workers with clients/breaker.sh, all after the same locks.
type breakers struct {
	witness string
	locks   int
	workers []*hosts.Process
}

const locksPerBreaker = 3

// takeoversAtLeast would have about ten errors were all removed that is not what was looked at: every third would end with one, and
// every sixtieth with two holders.
var takeoversAtLeast = rounds(40, 200)

// inContainer starts a worker with a pid namespace of its own. It has its locks for so long that one is broken, if it can be,
// which somebody has.
var inContainer = []string{"env", "STAY=0.1", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}

// startBreakers starts a worker on each of some hosts, which may be named repeatedly, by a command that is put before.
func startBreakers(t testing.TB, before []string, format, dir, witness string, on ...*hosts.Host) *breakers {
	t.Helper()
	script, err := filepath.Abs("clients/breaker.sh")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(witness, 0o755))
	b := &breakers{witness: witness, locks: len(on) * locksPerBreaker}
	for i, h := range on {
		name := fmt.Sprintf("%s-%d", h.Name(), i)
		command := append(slices.Clone(before), "bash", script, format, dir, witness, name, fmt.Sprint(b.locks))
		b.workers = append(b.workers, h.Start(command[0], command[1:]...))
	}
	return b
}

// stop lets the workers end, and answers what went wrong for them.
func (b *breakers) stop(t testing.TB) (errors []string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(b.witness, "stop"), nil, 0o644))
	for _, worker := range b.workers {
		require.NoError(t, worker.Wait())
		for line := range strings.Lines(worker.Stdout()) {
			if strings.HasPrefix(line, "error: ") {
				errors = append(errors, fmt.Sprintf("%s: %s", worker.Host().Name(), line))
			}
		}
	}
	return errors
}

var lateHolder = regexp.MustCompile(`(?m)^late (.*)$`)

// logs is what the witness saw of each lock, without the holders that were late: others could rightly break
// their locks, and may have been inside with them.
func (b *breakers) logs(t testing.TB) (logs []string) {
	t.Helper()
	for i := range b.locks {
		text, err := os.ReadFile(filepath.Join(b.witness, fmt.Sprint(i)))
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		log := string(text)
		for _, late := range lateHolder.FindAllStringSubmatch(log, -1) {
			log = regexp.MustCompile(`(?m)^.* `+late[1]+`\n`).ReplaceAllString(log, "")
		}
		logs = append(logs, log)
	}
	return logs
}

// overlaps is what is wrong with what the witness saw. While they are at work, they seem never to leave.
func (b *breakers) overlaps(t testing.TB) (faults []string) {
	t.Helper()
	for i, log := range b.logs(t) {
		found, _ := overlaps(log)
		for _, fault := range found {
			faults = append(faults, fmt.Sprintf("lock %d, %s", i, fault))
		}
	}
	return faults
}

// takeovers is how often a lock was had again whose holder had crashed.
func (b *breakers) takeovers(t testing.TB) (count int) {
	t.Helper()
	for _, log := range b.logs(t) {
		crashes := strings.Count(log, "crash ")
		if last := strings.LastIndex(log, "crash "); last >= 0 && !strings.Contains(log[last:], "enter ") {
			crashes--
		}
		count += crashes
	}
	return count
}

// awaitTakeovers is patient as long as there are more from time to time.
func (b *breakers) awaitTakeovers(t testing.TB, count int) {
	t.Helper()
	for next := b.takeovers(t); next < count; {
		next = min(count, next+10)
		hosts.Eventually(t, fmt.Sprintf("%d takeovers", next), func() (string, bool) {
			now := b.takeovers(t)
			return fmt.Sprint(now), now >= next
		})
	}
}

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

// refusals is how many removals have been refused, ever.
func (n *node) refusals(t testing.TB) (count int) {
	t.Helper()
	metrics, err := n.get("/metrics")
	require.NoError(t, err)
	found := regexp.MustCompile(`lockfs_events_total\{event="removal_refused"\} (\d+)`).FindStringSubmatch(metrics)
	if found != nil {
		_, err = fmt.Sscan(found[1], &count)
		require.NoError(t, err)
	}
	return count
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
