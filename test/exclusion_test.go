package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestExclusion is what lockfs is for: programs on three hosts that know nothing of
// it take turns.
func TestExclusion(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for _, kind := range clients {
		t.Run(kind.name, func(t *testing.T) {
			j := c.startJob(t, kind)
			j.witness.stop(t)
			j.wait(t)
			c.requireExclusion(t, j)
			for _, n := range c.nodes {
				assert.Empty(t, j.errors(n.host), "errors on %s", n.name)
			}
		})
	}
	c.requireSameState(t)
}

// TestExclusionWhileLeadersDie kills the leader again and again, and with it the
// mount on its host.
func TestExclusionWhileLeadersDie(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	jobs := c.startJobs(t)
	killed := make(map[*node]bool)
	orphans := newOrphans()
	for range faults(5) {
		leader := c.leader()
		t.Logf("killing %s after %d rounds", leader.name, jobs.rounds(t, ""))
		leader.kill()
		killed[leader] = true
		c.requireService(t, c.others(leader)[0])
		leader.start(t)
		jobs.awaitProgress(t, c.nodes[0], func(j *job) { orphans.remove(t, j, c.nodes[0].host) })
	}
	jobs.finish(t, c)
	orphans.requireNone(t)
	for _, n := range c.nodes {
		if killed[n] {
			// What a mount says whose daemon is gone, and what is below it until the next.
			jobs.requireErrors(t, n, "Transport endpoint is not connected", "Software caused connection abort",
				"No such file or directory", "Read-only file system", "can't cd to", "echo: I/O error")
			continue
		}
		jobs.requireErrors(t, n)
	}
	c.requireSameState(t)
}

// TestExclusionWhileAHostIsCutOff cuts hosts off from the network, one at a time, a
// follower and the leader in turn.
func TestExclusionWhileAHostIsCutOff(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--op-timeout", "3s")
	jobs := c.startJobs(t)
	cut := make(map[*node]bool)
	for i := range faults(4) {
		victim := c.leader()
		if i%2 == 0 {
			victim = c.others(victim)[i/2%2]
		}
		t.Logf("cutting %s off after %d rounds", victim.name, jobs.rounds(t, ""))
		before := jobs.countErrors(victim)
		victim.host.Cut()
		cut[victim] = true
		c.requireService(t, c.others(victim)[0])
		jobs.awaitErrors(t, victim, before)
		victim.host.Heal()
		jobs.awaitProgress(t, c.nodes[0])
	}
	jobs.finish(t, c)
	for _, n := range c.nodes {
		if cut[n] {
			// dash does not say why it cannot change the directory or write.
			jobs.requireErrors(t, n, "Connection timed out", "can't cd to", "echo: I/O error")
			continue
		}
		jobs.requireErrors(t, n)
	}
	c.requireSameState(t)
}
