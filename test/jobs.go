package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

const workersPerJob = 4

var roundsPerJob = rounds(12, 50) // of each worker

// startJob starts a job of one client on the cluster, its workers spread over all nodes.
func (c *cluster) startJob(t testing.TB, kind client) *job {
	t.Helper()
	dir := c.path(kind.name)
	c.nodes[0].host.MustRun(t, "mkdir", dir)
	var on []*hosts.Host
	for i := range workersPerJob {
		on = append(on, c.nodes[i%len(c.nodes)].host)
	}
	w := newWitness(t, filepath.Join(c.net.Dir(), kind.name+".witness"))
	return startJob(t, kind, dir, w, roundsPerJob, on...)
}

// requireExclusion checks a job that has ended: nobody overlapped, no count was
// lost, nothing is left over on any host.
func (c *cluster) requireExclusion(t testing.TB, j *job) {
	t.Helper()
	require.Empty(t, j.witness.verdict(t), "%s: what the witness saw", j.client.name)
	require.GreaterOrEqual(t, j.witness.rounds(t, ""), workersPerJob*roundsPerJob, j.client.name)
	for _, n := range c.nodes {
		require.Empty(t, n.host.MustRun(t, "ls", "-A", j.dir), "%s: left over, seen on %s", j.client.name, n.name)
	}
}

// jobs is one job of each client, all at the same time.
type jobs []*job

func (c *cluster) startJobs(t testing.TB) jobs {
	t.Helper()
	var js jobs
	for _, kind := range clients {
		js = append(js, c.startJob(t, kind))
	}
	return js
}

func (js jobs) rounds(t testing.TB, prefix string) int {
	t.Helper()
	total := 0
	for _, j := range js {
		total += j.witness.rounds(t, prefix)
	}
	return total
}

// awaitProgress waits until each lock has been had a few times more. from is a node
// that can tell how the locks are if they have not; meanwhile is done while waiting.
func (js jobs) awaitProgress(t testing.TB, from *node, meanwhile ...func(*job)) {
	t.Helper()
	const few = 5
	before := make(map[*job]int)
	for _, j := range js {
		before[j] = j.witness.rounds(t, "")
	}
	hosts.Eventually(t, "all jobs get on", func() (string, bool) {
		var waiting []string
		for _, j := range js {
			if now := j.witness.rounds(t, ""); now < before[j]+few {
				for _, do := range meanwhile {
					do(j)
				}
				waiting = append(waiting, fmt.Sprintf("%s: %d rounds, and %d before: ", j.client.name, now, before[j])+j.describe(from.host))
			}
		}
		return strings.Join(waiting, "\n"), len(waiting) == 0
	})
}

// countErrors is how often each worker on a node's host has complained.
func (js jobs) countErrors(n *node) map[*hosts.Process]int {
	count := make(map[*hosts.Process]int)
	for _, j := range js {
		for _, worker := range j.workers {
			if worker.Host() == n.host {
				count[worker] = strings.Count(worker.Log(), "error: ")
			}
		}
	}
	return count
}

// awaitErrors waits until every worker on a node's host has complained again.
func (js jobs) awaitErrors(t testing.TB, n *node, before map[*hosts.Process]int) {
	t.Helper()
	hosts.Eventually(t, "every worker on "+n.name+" has met an error", func() (string, bool) {
		var waiting []string
		now := js.countErrors(n)
		for worker, count := range before {
			if now[worker] <= count {
				waiting = append(waiting, worker.String())
			}
		}
		return strings.Join(waiting, "\n"), len(waiting) == 0
	})
}

// requireErrors requires that the workers on a node complained of nothing but what
// is allowed, by a part of its text.
func (js jobs) requireErrors(t testing.TB, n *node, allowed ...string) {
	t.Helper()
	for _, j := range js {
		for _, line := range j.errors(n.host) {
			ok := false
			for _, text := range allowed {
				ok = ok || strings.Contains(line, text)
			}
			require.True(t, ok, "%s on %s: %s", j.client.name, n.name, line)
		}
	}
}

// finish lets the jobs come to their end and checks them.
func (js jobs) finish(t testing.TB, c *cluster) {
	t.Helper()
	for _, j := range js {
		j.witness.stop(t)
	}
	for _, j := range js {
		j.wait(t)
		c.requireExclusion(t, j)
	}
}
