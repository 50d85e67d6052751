package testcluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

const workersPerJob = 4

var roundsPerJob = Rounds(12, 50) // of each worker

// StartJob starts a job of one client, with workers on all nodes.
func (c *Cluster) StartJob(t testing.TB, kind Client) *Job {
	t.Helper()
	dir := c.Path(kind.Name)
	c.Nodes[0].Host.MustRun(t, "mkdir", dir)
	var on []*hosts.Host
	for i := range workersPerJob {
		on = append(on, c.Nodes[i%len(c.Nodes)].Host)
	}
	w := NewWitness(t, filepath.Join(c.Net.Dir(), kind.Name+".witness"))
	return StartJob(t, kind, dir, w, roundsPerJob, on...)
}

// RequireExclusion checks a finished job: no overlap, no lost count, and no remaining file on any host.
func (c *Cluster) RequireExclusion(t testing.TB, j *Job) {
	t.Helper()
	require.Empty(t, j.Witness.Verdict(t), "%s: what the witness saw", j.Client.Name)
	require.GreaterOrEqual(t, j.Witness.Rounds(t, ""), workersPerJob*roundsPerJob, j.Client.Name)
	for _, n := range c.Nodes {
		require.Empty(t, n.Host.MustRun(t, "ls", "-A", j.Dir), "%s: left over, seen on %s", j.Client.Name, n.Name)
	}
}

// Jobs are one job of each client, all at the same time.
type Jobs []*Job

// StartJobs starts a job of each client.
func (c *Cluster) StartJobs(t testing.TB) Jobs {
	t.Helper()
	var js Jobs
	for _, kind := range Clients {
		js = append(js, c.StartJob(t, kind))
	}
	return js
}

// Rounds returns the number of acquisitions by workers with a prefix.
func (js Jobs) Rounds(t testing.TB, prefix string) int {
	t.Helper()
	total := 0
	for _, j := range js {
		total += j.Witness.Rounds(t, prefix)
	}
	return total
}

// AwaitProgress waits until each lock has been acquired a few more times. If not, it reports the locks from a
// node. meanwhile runs during the wait.
func (js Jobs) AwaitProgress(t testing.TB, from *Node, meanwhile ...func(*Job)) {
	t.Helper()
	const few = 5
	before := make(map[*Job]int)
	for _, j := range js {
		before[j] = j.Witness.Rounds(t, "")
	}
	hosts.Eventually(t, "all jobs get on", func() (string, bool) {
		var waiting []string
		for _, j := range js {
			if now := j.Witness.Rounds(t, ""); now < before[j]+few {
				for _, do := range meanwhile {
					do(j)
				}
				waiting = append(waiting, fmt.Sprintf("%s: %d rounds, and %d before: ", j.Client.Name, now, before[j])+j.describe(from.Host))
			}
		}
		return strings.Join(waiting, "\n"), len(waiting) == 0
	})
}

// CountErrors returns the number of errors of each worker on a node's host.
func (js Jobs) CountErrors(n *Node) map[*hosts.Process]int {
	count := make(map[*hosts.Process]int)
	for _, j := range js {
		for _, worker := range j.Workers {
			if worker.Host() == n.Host {
				count[worker] = strings.Count(worker.Log(), "error: ")
			}
		}
	}
	return count
}

// AwaitErrors waits for another error of each worker on a node's host.
func (js Jobs) AwaitErrors(t testing.TB, n *Node, before map[*hosts.Process]int) {
	t.Helper()
	hosts.Eventually(t, "every worker on "+n.Name+" has met an error", func() (string, bool) {
		var waiting []string
		now := js.CountErrors(n)
		for worker, count := range before {
			if now[worker] <= count {
				waiting = append(waiting, worker.String())
			}
		}
		return strings.Join(waiting, "\n"), len(waiting) == 0
	})
}

// RequireErrors requires that all errors of the workers on a node contain an allowed text.
func (js Jobs) RequireErrors(t testing.TB, n *Node, allowed ...string) {
	t.Helper()
	for _, j := range js {
		for _, line := range j.Errors(n.Host) {
			ok := false
			for _, text := range allowed {
				ok = ok || strings.Contains(line, text)
			}
			require.True(t, ok, "%s on %s: %s", j.Client.Name, n.Name, line)
		}
	}
}

// Finish waits for the end of the jobs and checks them.
func (js Jobs) Finish(t testing.TB, c *Cluster) {
	t.Helper()
	for _, j := range js {
		j.Witness.Stop(t)
	}
	for _, j := range js {
		j.Wait(t)
		c.RequireExclusion(t, j)
	}
}
