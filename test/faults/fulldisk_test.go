package faults

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// heartbeat renews a large file in its size for as long as there is no stop, and tells how often it was done.
const heartbeat = `
import os, sys, time
mount, outside = sys.argv[1:]
n = 0
while not os.path.exists(outside + "/stop"):
    try:
        with open(mount + "/heart", "r+") as file:
            file.write(("%010d" % (n + 1)) * 20000)
        n += 1
        open(outside + "/beats.new", "w").write(str(n))
        os.rename(outside + "/beats.new", outside + "/beats")
    except OSError:
        time.sleep(0.05)
`

// TestFullDisks has the disks of one server, and then of all, be filled by another program and freed again, under contenders:
// nothing that was acknowledged is lost, nobody meets another one, and the service is back by itself.
func TestFullDisks(t *testing.T) {
	c := startOnSmallDisks(t)
	first := c.Nodes[0]
	contending := startContention(t, c, c.Hosts()...)
	beating := startHeartbeat(t, c, c.Nodes[1], contending.outside)
	contending.goesOn(t)
	leader := c.Leader()
	for _, full := range [][]*testcluster.Node{{leader}, c.Others(leader)[:1], c.Nodes} {
		stopped := make(map[*testcluster.Node]int)
		for _, n := range full {
			stopped[n] = stops(n)
		}
		var free []func()
		for _, n := range full {
			free = append(free, fill(t, n))
		}
		if len(full) == 1 { // else there may be no majority before there is an alarm
			attempt := 0
			hosts.Eventually(t, "nothing may grow", func() (string, bool) {
				attempt++
				said, err := first.Host.Run("touch", c.Path("grows."+full[0].Name+"."+strconv.Itoa(attempt)))
				return said, err != nil && strings.Contains(said+err.Error(), "No space left")
			})
		}
		hosts.Eventually(t, "logs need space, and have none", func() (string, bool) {
			waiting := 0
			for _, n := range full {
				if stops(n) > stopped[n] {
					waiting++
				}
			}
			return strconv.Itoa(waiting), waiting > len(full)/2 // then there is nothing to write for the others
		})
		if len(full) == 1 {
			alarms, err := c.Others(full[0])[0].Lockfs("alarm", "list")
			require.NoError(t, err)
			require.Contains(t, alarms, "no_space")
			c.Others(full[0])[0].Host.MustRun(t, "chmod", "640", c.Path("heart"))
		}
		for _, free := range free {
			free()
		}
		contending.goesOn(t)
	}
	contending.finish(t)
	require.NoError(t, beating.Wait(), beating.Log())
	requireBeats(t, c, contending.outside)
	c.RequireSameState(t)
	for _, n := range c.Nodes {
		n.Stop(t)
	}
}

// TestAFullServerIsKilled has it be started again while its disk still is full, and then when there is space.
func TestAFullServerIsKilled(t *testing.T) {
	c := startOnSmallDisks(t)
	outside := t.TempDir()
	leader := c.Leader()
	killed := c.Others(leader)[0]
	beating := startHeartbeat(t, c, leader, outside)
	free := fill(t, killed)
	hosts.Eventually(t, "its log needs space, and has none", func() (string, bool) { return killed.Server.Log(), stops(killed) > 0 })
	killed.Kill()
	killed.Launch()
	hosts.Eventually(t, "it finds no space", func() (string, bool) {
		log := killed.Server.Log()
		return log, stops(killed) > 0 || strings.Contains(log, "no space left on device")
	})
	killed.Kill() // if it has not ended
	free()
	killed.Start(t)
	leader.Host.MustRun(t, "touch", filepath.Join(outside, "stop"))
	require.NoError(t, beating.Wait(), beating.Log())
	requireBeats(t, c, outside)
	c.RequireSameState(t)
	for _, n := range c.Nodes {
		n.Stop(t)
	}
}

// TestAFullServerServesItsMount has a server be killed, and started again as systemd does, while its disk is full, and have its disk fill once it has
// opened what is there. Its mount goes on through the others each time: what is beating on it renews its file all along.
func TestAFullServerServesItsMount(t *testing.T) {
	c := startOnSmallDisks(t, "NOTIFY_SOCKET=/run/no-such-socket")
	outside := t.TempDir()
	full := c.Nodes[2]
	hosts.Eventually(t, "the other servers are written down", func() (string, bool) {
		content, err := full.Host.Run("cat", filepath.Join(full.Data, "mount.servers"))
		return fmt.Sprint(content, err), len(strings.Fields(content)) == 2
	})
	beating := startHeartbeat(t, c, full, outside)
	again := func() {
		full.Kill()
		full.Launch()
		require.NoError(t, full.Server.WaitOutput("went on with the mount"))
	}
	beats := func() {
		t.Helper()
		before := countBeats(t, full, outside)
		hosts.Eventually(t, "its mount goes on", func() (string, bool) {
			now := countBeats(t, full, outside)
			return strconv.Itoa(now), now > before+3
		})
	}
	beats()
	free := fill(t, full)
	hosts.Eventually(t, "its log needs space, and has none", func() (string, bool) { return full.Server.Log(), stops(full) > 0 })
	again()
	beats()
	free()
	full.AwaitReady(t)
	beats()

	again()
	require.NoError(t, full.Server.WaitOutput("entering follower state"))
	free = fill(t, full)
	hosts.Eventually(t, "its log needs space, and has none", func() (string, bool) { return full.Server.Log(), stops(full) > 0 })
	beats()
	free()
	full.AwaitReady(t)
	beats()

	full.Host.MustRun(t, "touch", filepath.Join(outside, "stop"))
	require.NoError(t, beating.Wait(), beating.Log())
	requireBeats(t, c, outside)
	c.RequireSameState(t)
	for _, n := range c.Nodes {
		n.Stop(t)
	}
}

// startOnSmallDisks starts three servers whose data is on disks of their own, with more in their environment.
func startOnSmallDisks(t *testing.T, environment ...string) *testcluster.Cluster {
	c := testcluster.NewCluster(t, "--min-free", "16M")
	for range 3 {
		n := c.Add(t)
		n.Environment = environment
		n.Host.MustRun(t, "mkdir", n.Data)
		n.Host.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=64m", "data", n.Data)
		n.Start(t)
	}
	return c
}

func startHeartbeat(t *testing.T, c *testcluster.Cluster, on *testcluster.Node, outside string) *hosts.Process {
	on.Host.MustRun(t, "python3", "-c", "import sys; open(sys.argv[1], 'w').write('0' * 200000)", c.Path("heart"))
	return on.Host.Start("python3", "-c", heartbeat, c.Mount, outside)
}

// requireBeats requires that the last renewal is there that was acknowledged.
func requireBeats(t *testing.T, c *testcluster.Cluster, outside string) {
	t.Helper()
	on := c.Nodes[0].Host
	beats := countBeats(t, c.Nodes[0], outside)
	require.Positive(t, beats)
	last, err := strconv.Atoi(on.MustRun(t, "head", "-c", "10", c.Path("heart")))
	require.NoError(t, err)
	require.GreaterOrEqual(t, last, beats, "a renewal that was acknowledged")
}

// countBeats is how many renewals were acknowledged.
func countBeats(t *testing.T, on *testcluster.Node, outside string) int {
	t.Helper()
	beats, err := strconv.Atoi(strings.TrimSpace(on.Host.MustRun(t, "sh", "-c", `cat "$1/beats" || echo 0`, "sh", outside)))
	require.NoError(t, err)
	return beats
}

// fill leaves no space on a server's disk until free is called.
func fill(t *testing.T, n *testcluster.Node) (free func()) {
	filler := filepath.Join(n.Data, "filler")
	filling := n.Host.Start("sh", "-c", "while :; do cat /dev/zero >> "+filler+"; sleep 0.05; done 2> /dev/null")
	return func() {
		filling.Kill()
		n.Host.MustRun(t, "rm", filler)
	}
}

// stops is how often a server has said that it waits for space.
func stops(n *testcluster.Node) int {
	return strings.Count(n.Server.Log(), "the disk is full: this node takes no part")
}
