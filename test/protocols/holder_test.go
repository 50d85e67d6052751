package protocols

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// processLocks are contents that make a lock live as long as the process that wrote them.
var processLocks = map[string]string{"pid": testcluster.PidContent, "beads": testcluster.BeadsContent}

// TestDeadHolder ends processes that hold locks, in sight of their mount and out of it.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	g := c.AddGuest(t, "m")
	g.Start(t)
	everywhere := append(c.Hosts(), g.Host)

	t.Run("killed", func(t *testing.T) {
		for format, content := range processLocks {
			for _, n := range []int{1, 3} {
				lock := fmt.Sprintf("%s-%d", format, n)
				holder := c.StartHolder(t, everywhere[n], lock, content)
				c.RequireHeld(t, lock, everywhere...)
				holder.Process.Kill()
				c.AwaitGone(t, lock, everywhere...)
				events := c.Nodes[0].Events(t)
				require.Equal(t, []string{"lock_acquired", "lock_stale", "lock_removed"}, testcluster.Story(events, lock))
				removed := testcluster.LastEvent(t, events, "lock_removed", lock)
				assert.Equal(t, format, removed.Format)
				assert.Equal(t, everywhere[n].Name(), removed.Host)
				assert.Contains(t, removed.Reason, fmt.Sprint(removed.PID), "the evidence")
			}
		}
	})

	// What nobody can know to be dead is there when what died later has gone.
	t.Run("alive as far as anybody knows", func(t *testing.T) {
		frozen := c.StartHolder(t, g.Host, "frozen", testcluster.PidContent)
		frozen.Process.Freeze()
		c.StartHolder(t, g.Host, "gone-before", `gone=$(sh -c 'echo $$'); ! kill -0 $gone && echo $gone`)
		c.StartHolder(t, g.Host, "killed", testcluster.PidContent).Process.Kill()
		c.AwaitGone(t, "killed", everywhere...)
		c.RequireHeld(t, "frozen", everywhere...)
		c.RequireHeld(t, "gone-before", everywhere...)
		frozen.Process.Thaw()
		frozen.Must("rm frozen")
	})

	t.Run("in a container", func(t *testing.T) {
		holder := g.Host.Start("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
			`set -C; echo $$ > "$1" && echo held; sleep 1000`, "sh", c.Path("contained"))
		require.NoError(t, holder.WaitOutput("held\n"))
		require.Equal(t, "1\n", g.Host.MustRun(t, "cat", c.Path("contained")))
		c.RequireHeld(t, "contained", everywhere...)
		holder.Kill()
		c.AwaitGone(t, "contained", everywhere...)
	})

	t.Run("while the mount was dead", func(t *testing.T) {
		alive := c.StartHolder(t, g.Host, "alive", testcluster.PidContent)
		dead := c.StartHolder(t, g.Host, "dead", testcluster.BeadsContent)
		reused := c.StartHolder(t, g.Host, "reused", testcluster.PidContent)
		pid := strings.TrimSpace(reused.Must("echo $$"))
		g.Kill()
		dead.Process.Kill()
		reused.Process.Kill()
		testcluster.StartShell(t, g.Host, "/").Must("until [ \"$!\" = " + pid + " ]; do kill $!; " +
			"echo $((" + pid + " - 1)) > /proc/sys/kernel/ns_last_pid; sleep 1000 & done")
		g.Start(t)
		c.AwaitGone(t, "dead", everywhere...)
		c.AwaitState(t, everywhere[0], "reused", "stale") // nothing tells whether it crashed
		g.Host.MustRun(t, "kill", "-0", pid)
		c.RequireHeld(t, "alive", everywhere...)
		alive.Process.Kill()
		c.AwaitGone(t, "alive", everywhere...)
	})
}

// TestUnreachableHost cuts a host off. Its holders may well be alive.
func TestUnreachableHost(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, testcluster.ShortTerm...)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	a.SetRule(t, "impatient/*", "--host-timeout", "100ms")
	a.Host.MustRun(t, "mkdir", c.Path("impatient"))

	kept := c.StartHolder(t, g.Host, "kept", testcluster.PidContent)
	c.StartHolder(t, g.Host, "impatient/lock", testcluster.BeadsContent)
	_, err := a.Lockfs("host", "forget", "m")
	require.ErrorContains(t, err, "is mounted")
	_, err = a.Lockfs("host", "forget", "nobody")
	require.ErrorContains(t, err, "nobody")
	c.RequireHeld(t, "kept", a.Host)

	g.Host.Cut()
	c.AwaitState(t, a.Host, "kept", "unreachable")
	c.AwaitGone(t, "impatient/lock", a.Host)
	_, err = a.Host.Run("rm", c.Path("kept"))
	require.ErrorContains(t, err, "Device or resource busy")
	list, err := a.Lockfs("host", "list")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^m .*unreachable`, list)
	g.Host.Heal()
	c.AwaitState(t, a.Host, "kept", "held")
	kept.Process.Kill()
	c.AwaitGone(t, "kept", a.Host)

	c.StartHolder(t, g.Host, "forgotten", testcluster.PidContent)
	g.Host.Cut()
	c.AwaitState(t, a.Host, "forgotten", "unreachable")
	_, err = a.Lockfs("host", "forget", "m")
	require.NoError(t, err)
	c.AwaitGone(t, "forgotten", a.Host)
	g.Host.Heal()
	testcluster.RequireLocking(t, c, g.Host, a.Host)

	var told []string
	for _, e := range a.Events(t) {
		if e.Host == "m" && (strings.HasPrefix(e.Event, "host_") || e.Event == "lock_removed") {
			told = append(told, e.Event+" "+e.Path)
		}
	}
	require.Equal(t, []string{
		"host_unreachable ", "lock_removed impatient/lock", "host_back ", "lock_removed kept",
		"host_unreachable ", "host_forgotten ", "lock_removed forgotten",
	}, told)

	// After another boot nobody has what was held before, whoever seems to be there.
	holder := c.StartHolder(t, g.Host, "rebooted", testcluster.PidContent)
	pid := strings.TrimSpace(holder.Must("echo $$"))
	g.Kill()
	g.Host.MustRun(t, "sh", "-ec", `
		rm -rf /run/*
		echo 01234567-89ab-4cde-8f01-23456789abcd > /run/boot_id
		mount --bind /run/boot_id /proc/sys/kernel/random/boot_id`)
	c.AwaitState(t, a.Host, "rebooted", "unreachable")
	g.Start(t)
	c.AwaitGone(t, "rebooted", a.Host, g.Host)
	g.Host.MustRun(t, "kill", "-0", pid)
}
