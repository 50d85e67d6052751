package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// breakers are workers with clients/breaker.sh, all after the same locks.
type breakers struct {
	witness string
	workers []*hosts.Process
}

const (
	breakerLocks = 24
	// Were all removed that is not what was looked at, every third would end with an error and every sixtieth with
	// two holders.
	takeoversAtLeast = 150
)

// startBreakers starts a worker on each of some hosts, which may be named repeatedly.
func startBreakers(t testing.TB, format, dir, witness string, on ...*hosts.Host) *breakers {
	t.Helper()
	script, err := filepath.Abs("clients/breaker.sh")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(witness, 0o755))
	b := &breakers{witness: witness}
	for i, h := range on {
		name := fmt.Sprintf("%s-%d", h.Name(), i)
		b.workers = append(b.workers, h.Start("bash", script, format, dir, witness, name, fmt.Sprint(breakerLocks)))
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
	for i := range breakerLocks {
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
	for _, format := range []string{"semaphore", "pid"} {
		t.Run(format, func(t *testing.T) {
			disk := filepath.Join(c.net.Dir(), format)
			require.NoError(t, os.Mkdir(disk, 0o755))
			b := startBreakers(t, format, disk, disk+".disk-witness", on...)
			hosts.Eventually(t, "two holders of one lock on the local disk", func() (string, bool) {
				faults := strings.Join(b.overlaps(t), "\n")
				return faults, strings.Contains(faults, "while inside")
			})
			b.stop(t)

			dir := c.path(format)
			g.host.MustRun(t, "mkdir", dir)
			c.nodes[0].set(t, format+"/*", "--stale-after", "1s") // of semaphores
			before := c.nodes[0].refusals(t)
			b = startBreakers(t, format, dir, disk+".witness", on...)
			b.awaitTakeovers(t, faults(takeoversAtLeast))
			require.Empty(t, b.stop(t))
			require.Empty(t, b.overlaps(t))
			require.Greater(t, c.nodes[0].refusals(t), before, "removals that were refused")
		})
	}
	c.requireSameState(t)
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
