//go:build soak

package soakrecord

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/ledger"
	"lockfs/test/load"
	"lockfs/test/stats"
	"lockfs/test/testcluster"
)

var (
	longCommands = flag.Float64("long.commands", 1e5, "how many commands a long run has, about: ten for each lock, ten locks for each session")
	longWorkers  = flag.Int("long.workers", 100, "that have a session at a time")
)

const (
	tenths       = 10
	locksOfEach  = 10 // session
	longPatience = 12 * time.Hour
	keptInodes   = 1024 // that were removed last are kept, as programs may have them open
)

// TestLong has three servers do what they may have to in years: sessions come and go, and make locks, use them and remove them. After each tenth,
// when nobody is there, it prints what each server needs, and how long it took to take a lock. In the end that is what it was after the first
// tenth, but for what [allowances] say, and nothing of all that is left.
func TestLong(t *testing.T) {
	entry := ledger.New(ledger.Long)
	c := testcluster.StartInsecureCluster(t, 3)
	client := c.AddClient(t, "workers")
	shift := &load.Shift{
		Servers: strings.Split(c.Servers(), ","), Workers: *longWorkers, Locks: locksOfEach,
		Sessions: max(1, int(*longCommands)/tenths/100),
	}
	t.Cleanup(func() {
		if t.Failed() {
			entry.Findings = append(entry.Findings, fmt.Sprintf("TestLong with %d commands", entry.Operations))
		}
		require.NoError(t, entry.Add())
	})
	before := needsOf(t, c)
	say("at the start:\n%s", describeNeeds(before))
	var first, last tenth
	for n := range tenths {
		last = work(t, c, client, shift)
		entry.Operations += int64(last.done.Commands)
		entry.Counts["locks"] += int64(last.done.Locks)
		entry.Counts["sessions"] += int64(last.done.Sessions)
		say("%d of %d: %s", n+1, tenths, last)
		if n == 0 {
			first = last
		}
	}
	for i, n := range last.needs {
		require.Zero(t, n.locks+n.advisory, "%s: locks that are left", n.name)
		require.LessOrEqual(t, n.inodes, before[i].inodes+keptInodes, n.name)
		require.GreaterOrEqual(t, n.events-before[i].events, 2*float64(entry.Counts["locks"]), "each lock was taken and released, for who looks at events")
	}
	last.requireLike(t, first)
}

// tenth is what there was after one.
type tenth struct {
	done  load.Done
	needs []need
}

// work has a shift work, and waits until nothing of it is left.
func work(t *testing.T, c *testcluster.Cluster, client *hosts.Host, shift *load.Shift) tenth {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	working := client.Start(self, shift.Args()...)
	select {
	case <-working.Ended():
	case <-time.After(longPatience):
		t.Fatalf("they do not end: %s", working.Log())
	}
	require.NoError(t, working.Wait(), "%s", working.Log())
	var is tenth
	require.NoError(t, json.Unmarshal([]byte(working.Stdout()), &is.done))
	require.Equal(t, shift.Sessions, is.done.Sessions)
	require.Equal(t, shift.Commands(), is.done.Commands)
	hosts.Eventually(t, "all sessions have ended, and all servers have the same", func() (string, bool) {
		is.needs = needsOf(t, c)
		same := true
		for _, n := range is.needs {
			same = same && n.sessions == float64(len(c.Nodes)) && n.applied == is.needs[0].applied
		}
		return describeNeeds(is.needs), same
	})
	return is
}

func (is tenth) String() string {
	d := is.done
	return fmt.Sprintf("%d commands, %.0f a second; %d locks, taken in %s ms; %d sessions, opened in %s ms\n%s", d.Commands, float64(d.Commands)/d.Took.Seconds(),
		d.Locks, quantiles(d.Taking), d.Sessions, quantiles(d.Opening), describeNeeds(is.needs))
}

func quantiles(of []time.Duration) string {
	ms := func(q float64) float64 { return stats.Micros(stats.Quantile(of, q)) / 1000 }
	return fmt.Sprintf("%.1f (99 %%: %.1f)", ms(0.5), ms(0.99))
}

// need is what a server needs.
type need struct {
	name                                  string
	memory, descriptors, goroutines, disk float64
	audit                                 float64 // bytes of audit.jsonl and those before it, which have a bound of their own
	sessions, applied, events             float64
	inodes, locks, advisory               float64 // that are there
}

var metricLine = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{[^}]*\})? (\S+)$`)

func needsOf(t *testing.T, c *testcluster.Cluster) (all []need) {
	t.Helper()
	for _, n := range c.Nodes {
		said, err := n.Get("/metrics")
		require.NoError(t, err)
		is := make(map[string]float64)
		for _, line := range metricLine.FindAllStringSubmatch(said, -1) {
			value, err := strconv.ParseFloat(line[2], 64)
			require.NoError(t, err, line[0])
			is[line[1]] += value
		}
		all = append(all, need{
			name: n.Name, memory: is["process_resident_memory_bytes"], descriptors: is["process_open_fds"], goroutines: is["go_goroutines"],
			disk: bytesOf(t, n, "! -name audit*"), audit: bytesOf(t, n, "-name audit*"),
			sessions: is["lockfs_sessions"], applied: is["lockfs_raft_applied_index"],
			events: is["lockfs_events_total"], inodes: is["lockfs_inodes"], locks: is["lockfs_locks"], advisory: is["lockfs_kernel_locks"],
		})
	}
	return all
}

// bytesOf is what files of a server's data need on its disk.
func bytesOf(t *testing.T, n *testcluster.Node, which string) (bytes float64) {
	t.Helper()
	// What is removed meanwhile is not there to be counted.
	said := n.Host.MustRun(t, "sh", "-fc", `find "$1" -type f $2 -printf '%b\n' || :`, "sh", n.Data, which)
	for line := range strings.Lines(said) {
		blocks, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		require.NoError(t, err)
		bytes += 512 * blocks
	}
	return bytes
}

func describeNeeds(all []need) string {
	var b strings.Builder
	for _, n := range all {
		fmt.Fprintf(&b, "  %s: %.1f MiB of memory, %.0f descriptors, %.0f goroutines, %.1f MiB on disk, %.1f MiB of audit.jsonl; index %.0f, %.0f events, %.0f sessions, %.0f inodes\n",
			n.name, n.memory/mib, n.descriptors, n.goroutines, n.disk/mib, n.audit/mib, n.applied, n.events, n.sessions, n.inodes)
	}
	return b.String()
}

const mib = 1 << 20

// allowances are by how much a figure may be more in the end than after the first tenth: by a factor, and by something in addition, which
// counts where the first tenth was short.
var allowances = []struct {
	name          string
	factor, extra float64
	of            func(need) float64
}{
	{"memory", 1.5, 64 * mib, func(n need) float64 { return n.memory }},
	{"descriptors", 1, 10, func(n need) float64 { return n.descriptors }},
	{"goroutines", 1.1, 20, func(n need) float64 { return n.goroutines }},
	{"disk", 1.5, 128 * mib, func(n need) float64 { return n.disk }},
}

const (
	mostAudit   = 5 * 65 * mib // five files of 64 MiB, and a line
	slowestLast = 2            // times the median of the first tenth, and a few milliseconds, for other things that the machine does
	slowedBy    = 5 * time.Millisecond
)

// requireLike requires that a tenth needs about as much as the first.
func (is tenth) requireLike(t *testing.T, first tenth) {
	t.Helper()
	for i, n := range is.needs {
		for _, a := range allowances {
			was, now := a.of(first.needs[i]), a.of(n)
			say("%s: %s is %.2f times what it was after the first tenth", n.name, a.name, now/was)
			require.LessOrEqual(t, now, a.factor*was+a.extra, "%s: %s was %.0f after the first tenth", n.name, a.name, was)
		}
		require.LessOrEqual(t, n.audit, float64(mostAudit), n.name)
	}
	was, now := stats.Quantile(first.done.Taking, 0.5), stats.Quantile(is.done.Taking, 0.5)
	require.LessOrEqual(t, now, slowestLast*was+slowedBy, "it took %v to take a lock in the first tenth", was)
}
