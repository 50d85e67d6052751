package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// processLocks are contents that make a lock live as long as the process that wrote them.
var processLocks = map[string]string{"pid": pidContent, "beads": beadsContent}

// TestDeadHolder ends processes that hold locks, in sight of their mount and out of it.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	g := c.addGuest(t, "m")
	g.start(t)
	everywhere := append(c.hosts(), g.host)

	t.Run("killed", func(t *testing.T) {
		for format, content := range processLocks {
			for _, n := range []int{1, 3} {
				lock := fmt.Sprintf("%s-%d", format, n)
				holder := c.holder(t, everywhere[n], lock, content)
				c.requireHeld(t, lock, everywhere...)
				holder.process.Kill()
				c.awaitGone(t, lock, everywhere...)
				events := c.nodes[0].events(t)
				require.Equal(t, []string{"lock_acquired", "lock_stale", "lock_removed"}, story(events, lock))
				removed := lastEvent(t, events, "lock_removed", lock)
				assert.Equal(t, format, removed.Format)
				assert.Equal(t, everywhere[n].Name(), removed.Host)
				assert.Contains(t, removed.Reason, fmt.Sprint(removed.PID), "the evidence")
			}
		}
	})

	// What nobody can know to be dead is there when what died later has gone.
	t.Run("alive as far as anybody knows", func(t *testing.T) {
		frozen := c.holder(t, g.host, "frozen", pidContent)
		frozen.process.Freeze()
		c.holder(t, g.host, "gone-before", `gone=$(sh -c 'echo $$'); ! kill -0 $gone && echo $gone`)
		c.holder(t, g.host, "killed", pidContent).process.Kill()
		c.awaitGone(t, "killed", everywhere...)
		c.requireHeld(t, "frozen", everywhere...)
		c.requireHeld(t, "gone-before", everywhere...)
		frozen.process.Thaw()
		frozen.must("rm frozen")
	})

	t.Run("in a container", func(t *testing.T) {
		holder := g.host.Start("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
			`set -C; echo $$ > "$1" && echo held; sleep 1000`, "sh", c.path("contained"))
		require.NoError(t, holder.WaitOutput("held\n"))
		require.Equal(t, "1\n", g.host.MustRun(t, "cat", c.path("contained")))
		c.requireHeld(t, "contained", everywhere...)
		holder.Kill()
		c.awaitGone(t, "contained", everywhere...)
	})

	t.Run("while the mount was dead", func(t *testing.T) {
		alive := c.holder(t, g.host, "alive", pidContent)
		dead := c.holder(t, g.host, "dead", beadsContent)
		reused := c.holder(t, g.host, "reused", pidContent)
		pid := strings.TrimSpace(reused.must("echo $$"))
		g.kill()
		dead.process.Kill()
		reused.process.Kill()
		startShell(t, g.host, "/").must("until [ \"$!\" = " + pid + " ]; do kill $!; " +
			"echo $((" + pid + " - 1)) > /proc/sys/kernel/ns_last_pid; sleep 1000 & done")
		g.start(t)
		c.awaitGone(t, "dead", everywhere...)
		c.awaitGone(t, "reused", everywhere...)
		g.host.MustRun(t, "kill", "-0", pid)
		c.requireHeld(t, "alive", everywhere...)
		alive.process.Kill()
		c.awaitGone(t, "alive", everywhere...)
	})
}

// TestUnreachableHost cuts a host off. Its holders may well be alive.
func TestUnreachableHost(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, shortTerm...)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	a.set(t, "impatient/*", "--host-timeout", "100ms")
	a.host.MustRun(t, "mkdir", c.path("impatient"))

	kept := c.holder(t, g.host, "kept", pidContent)
	c.holder(t, g.host, "impatient/lock", beadsContent)
	_, err := a.lockfs("host", "forget", "m")
	require.ErrorContains(t, err, "is mounted")
	_, err = a.lockfs("host", "forget", "nobody")
	require.ErrorContains(t, err, "nobody")
	c.requireHeld(t, "kept", a.host)

	g.host.Cut()
	c.awaitState(t, a.host, "kept", "unreachable")
	c.awaitGone(t, "impatient/lock", a.host)
	_, err = a.host.Run("rm", c.path("kept"))
	require.ErrorContains(t, err, "Device or resource busy")
	list, err := a.lockfs("host", "list")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^m .*unreachable`, list)
	g.host.Heal()
	c.awaitState(t, a.host, "kept", "held")
	kept.process.Kill()
	c.awaitGone(t, "kept", a.host)

	c.holder(t, g.host, "forgotten", pidContent)
	g.host.Cut()
	c.awaitState(t, a.host, "forgotten", "unreachable")
	_, err = a.lockfs("host", "forget", "m")
	require.NoError(t, err)
	c.awaitGone(t, "forgotten", a.host)
	g.host.Heal()
	requireLocking(t, c, g.host, a.host)

	var told []string
	for _, e := range a.events(t) {
		if e.Host == "m" && (strings.HasPrefix(e.Event, "host_") || e.Event == "lock_removed") {
			told = append(told, e.Event+" "+e.Path)
		}
	}
	require.Equal(t, []string{
		"host_unreachable ", "lock_removed impatient/lock", "host_back ", "lock_removed kept",
		"host_unreachable ", "host_forgotten ", "lock_removed forgotten",
	}, told)

	// After another boot nobody has what was held before, whoever seems to be there.
	holder := c.holder(t, g.host, "rebooted", pidContent)
	pid := strings.TrimSpace(holder.must("echo $$"))
	g.kill()
	g.host.MustRun(t, "sh", "-ec", `
		rm -rf /run/*
		echo 01234567-89ab-4cde-8f01-23456789abcd > /run/boot_id
		mount --bind /run/boot_id /proc/sys/kernel/random/boot_id`)
	c.awaitState(t, a.host, "rebooted", "unreachable")
	g.start(t)
	c.awaitGone(t, "rebooted", a.host, g.host)
	g.host.MustRun(t, "kill", "-0", pid)
}
