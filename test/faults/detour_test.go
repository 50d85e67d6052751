package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestALinkToTheLeaderThatIsCutCostsNothing cuts a mount and a server from the leader, and from it alone, for longer than a session and the
// lock delay last. All three still reach a common server. Programs go on, what they hold stays theirs, and commands work.
func TestALinkToTheLeaderThatIsCutCostsNothing(t *testing.T) {
	t.Parallel()
	const term, delay = 3 * time.Second, 2 * time.Second
	c := testcluster.StartCluster(t, 3, "--session-term", term.String(), "--lock-delay", delay.String())
	mount, others := c.AddGuest(t, "mount"), c.AddGuest(t, "others")
	mount.Start(t)
	others.Start(t)
	leader := c.Leader()
	server, common := c.Others(leader)[0], c.Others(leader)[1]

	type holder struct {
		testcluster.Actor
		host, lock string
		waits      func() string
	}
	var holders []*holder
	for _, h := range []*holder{
		{Actor: testcluster.StartActor(t, mount.Host, c.Mount), host: "mount", lock: "of-mount"},
		{Actor: testcluster.StartActor(t, server.Host, c.Mount), host: server.Name, lock: "of-server"},
	} {
		h.Must(fmt.Sprintf(`opened("f", %q)`, h.lock))
		h.Require(`flock("f", "ex")`, "ok")
		waiter := testcluster.StartActor(t, others.Host, c.Mount)
		waiter.Must(fmt.Sprintf(`opened("f", %q)`, h.lock))
		h.waits = waiter.Starts(`flock("f", "ex", wait=True)`)
		common.AwaitAdvisory(t, h.lock, "waiting", "others")
		holders = append(holders, h)
	}
	require.NoError(t, mount.Host.Start("sh", "-c", "set -C; echo > "+c.Path("by-name")).Wait())

	mount.Host.CutLink(leader.Host)
	server.Host.CutLink(leader.Host)
	began := time.Now()
	for i := 0; time.Since(began) < 2*(term+delay); i++ {
		for _, h := range []string{"mount", "server"} {
			on := mount.Host
			if h == "server" {
				on = server.Host
			}
			at := c.Path(fmt.Sprint(h, i))
			on.MustRun(t, "mkdir", at)
			common.Host.MustRun(t, "test", "-d", at)
			_, err := others.Host.Run("mkdir", at)
			require.ErrorContains(t, err, "File exists")
			common.Host.MustRun(t, "rmdir", at)
			_, err = on.Run("test", "-e", at)
			require.Error(t, err, "what others do is seen at once")
		}
	}
	for _, h := range holders {
		common.AwaitAdvisory(t, h.lock, "held", h.host)
		common.AwaitAdvisory(t, h.lock, "waiting", "others")
		h.Require(`say(os.pwrite, files["f"], b"x", 0)`, "1")
	}
	_, err := others.Host.Run("sh", "-c", "set -C; echo > "+c.Path("by-name"))
	require.Error(t, err)

	said, err := server.Lockfs("rule", "set", "ci/*.lock", "--guard", "host")
	require.NoError(t, err, said)
	said, err = server.Lockfs("session", "list")
	require.NoError(t, err, said)
	require.Contains(t, said, "mount")
	said, err = server.Lockfs("locks")
	require.NoError(t, err, said)
	said, err = server.Host.Run(c.Program, "rm", "--force", c.Path("by-name"))
	require.NoError(t, err, said)
	said, err = mount.Host.Run(c.Program, "locks", c.Path("of-mount"))
	require.NoError(t, err, said)
	for _, h := range []*hosts.Host{mount.Host, server.Host} {
		said, err = h.Run(c.Program, "status")
		require.NoError(t, err, said)
		require.NotContains(t, said, "unreachable", "another server asks the leader")
	}

	mount.Host.HealLink(leader.Host)
	server.Host.HealLink(leader.Host)
	for _, h := range holders {
		h.Require(`flock("f", "un")`, "ok")
		require.Equal(t, "ok", h.waits())
	}
	require.Equal(t, leader, c.Leader(), "there was no election")
}
