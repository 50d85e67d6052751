package primitives

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"lockfs/test/testcluster"
)

// TestExclusion is what lockfs is for: programs on three hosts that know nothing of
// it take turns.
func TestExclusion(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	for _, kind := range testcluster.Clients {
		t.Run(kind.Name, func(t *testing.T) {
			j := c.StartJob(t, kind)
			j.Witness.Stop(t)
			j.Wait(t)
			c.RequireExclusion(t, j)
			for _, n := range c.Nodes {
				assert.Empty(t, j.Errors(n.Host), "errors on %s", n.Name)
			}
		})
	}
	c.RequireSameState(t)
}

// TestExclusionWhileLeadersDie kills the leader again and again, and with it the
// mount on its host.
func TestExclusionWhileLeadersDie(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	jobs := c.StartJobs(t)
	killed := make(map[*testcluster.Node]bool)
	orphans := testcluster.NewOrphans()
	for range testcluster.Faults(5) {
		leader := c.Leader()
		t.Logf("killing %s after %d rounds", leader.Name, jobs.Rounds(t, ""))
		leader.Kill()
		killed[leader] = true
		c.RequireService(t, c.Others(leader)[0])
		leader.Start(t)
		jobs.AwaitProgress(t, c.Nodes[0], func(j *testcluster.Job) { orphans.Remove(t, j, c.Nodes[0].Host) })
	}
	jobs.Finish(t, c)
	orphans.RequireNone(t)
	for _, n := range c.Nodes {
		if killed[n] {
			// What a mount says whose daemon is gone, and what is below it until the next.
			jobs.RequireErrors(t, n, "Transport endpoint is not connected", "Software caused connection abort",
				"No such file or directory", "Read-only file system", "can't cd to", "echo: I/O error")
			continue
		}
		jobs.RequireErrors(t, n)
	}
	c.RequireSameState(t)
}

// TestExclusionWhileAHostIsCutOff cuts hosts off from the network, one at a time, a
// follower and the leader in turn.
func TestExclusionWhileAHostIsCutOff(t *testing.T) {
	t.Parallel()
	// Followers may take two seconds to miss their leader, after an attempt to ask it has been given up; and an election may take two rounds.
	c := testcluster.StartCluster(t, 3, "--op-timeout", "12s")
	jobs := c.StartJobs(t)
	cut := make(map[*testcluster.Node]bool)
	for i := range testcluster.Faults(2) {
		victim := c.Leader()
		if i%2 == 0 {
			victim = c.Others(victim)[i/2%2]
		}
		t.Logf("cutting %s off after %d rounds", victim.Name, jobs.Rounds(t, ""))
		before := jobs.CountErrors(victim)
		victim.Host.Cut()
		cut[victim] = true
		c.RequireService(t, c.Others(victim)[0])
		jobs.AwaitErrors(t, victim, before)
		victim.Host.Heal()
		jobs.AwaitProgress(t, c.Nodes[0])
	}
	jobs.Finish(t, c)
	for _, n := range c.Nodes {
		if cut[n] {
			// dash does not say why it cannot change the directory or write.
			jobs.RequireErrors(t, n, "Connection timed out", "can't cd to", "echo: I/O error")
			continue
		}
		jobs.RequireErrors(t, n)
	}
	c.RequireSameState(t)
}
