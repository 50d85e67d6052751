package faults

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A timed host has a clock of its own, and so have its programs.
type timed struct {
	host   *hosts.Host
	offset time.Duration
}

// run runs a script of bash by the host's clock, in a directory.
func (h timed) run(dir, script string, args ...string) (string, error) {
	command := append([]string{"env", "--chdir=" + dir, "bash", "-c", script, "bash"}, args...)
	if h.offset != 0 {
		command = append([]string{"faketime", "-f", fmt.Sprintf("%+ds", int(h.offset.Seconds()))}, command...)
	}
	return h.host.Run(command[0], command[1:]...)
}

const (
	takeSemaphore = `set -C; echo "pid=$$
timestamp=$(date +%s)" > "$1"`

	// Breaks a lock that is older than so many seconds, and takes it.
	breakSemaphore = `[ $(($(date +%s) - $(sed -n 's/^timestamp=//p' "$1"))) -gt "$2" ] || { echo held; exit; }
rm "$1" && ` + takeSemaphore + ` && echo broken`
)

// addTimed adds a host with a mount and a wrong clock.
func addTimed(t testing.TB, c *testcluster.Cluster, name string, offset time.Duration) timed {
	t.Helper()
	g := c.AddGuest(t, name)
	g.SetClock(t, offset)
	// faketime leaves files there for programs that are killed, named after their pid.
	g.Host.MustRun(t, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
	g.Start(t)
	c.Nodes[0].AwaitSession(t, name, "the host's clock is known", func(s []testcluster.Session) bool {
		return testcluster.OneSession(s) && math.Abs(s[0].ClockOffset-offset.Seconds()) < 5
	})
	return timed{g.Host, offset}
}

// TestLocksUnderWrongClocks has hosts whose clocks differ by two hours judge each other's locks.
func TestLocksUnderWrongClocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	all := []timed{
		{host: c.Nodes[0].Host},
		addTimed(t, c, "fast", time.Hour),
		addTimed(t, c, "slow", -time.Hour),
	}
	c.Nodes[0].Host.MustRun(t, "mkdir", c.Path("live"), c.Path("stale"))
	c.Nodes[0].SetRule(t, "live/*", "--stale-after", "30m")
	c.Nodes[0].SetRule(t, "stale/*", "--stale-after", "1s")

	// On a local disk, who has a later clock breaks a live lock.
	disk := c.Net.Dir()
	_, err := all[2].run(disk, takeSemaphore, "lock")
	require.NoError(t, err)
	said, err := all[0].run(disk, breakSemaphore, "lock", "1800")
	require.NoError(t, err)
	require.Equal(t, "broken\n", said)

	for _, holder := range all {
		name := holder.host.Name()
		_, err := holder.run(c.Mount, takeSemaphore, "live/"+name)
		require.NoError(t, err)
		_, err = holder.run(c.Mount, takeSemaphore, "stale/"+name)
		require.NoError(t, err)
		for _, other := range all {
			if other == holder {
				continue
			}
			_, err := other.run(c.Mount, breakSemaphore, "live/"+name, "1800")
			if other.offset > holder.offset {
				require.ErrorContains(t, err, "Device or resource busy")
			} else {
				require.NoError(t, err)
			}
			c.RequireHeld(t, "live/"+name, other.host)
		}
		holder.host.MustRun(t, "rm", c.Path("live", name))
	}
	for i, holder := range all {
		other := all[(i+1)%len(all)]
		lock := filepath.Join("stale", holder.host.Name())
		c.AwaitState(t, other.host, lock, "stale")
		said, err := other.run(c.Mount, breakSemaphore, lock, "-8000")
		require.NoError(t, err)
		assert.Equal(t, "broken\n", said)
	}
}

// TestLiveLockIsNotBroken asks programs on the wrong host whether a lock's process is alive.
func TestLiveLockIsNotBroken(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	holder, other := c.Nodes[0].Host, c.Nodes[1].Host
	holder.MustRun(t, "sh", "-c", "echo 20000 > /proc/sys/kernel/ns_last_pid") // pids that the other has not
	for _, stale := range []string{
		`lockfile-create --use-pid --retry 0 --lock-name "$1"`,
		`kill -0 $(cat "$1") || rm "$1"`,
		`kill -0 $(cat "$1") || { echo $$ > tmp; mv tmp "$1"; }`,
		`kill -0 $(cat "$1") || echo $$ > "$1"`,
		`kill -0 $(cat "$1") || mv "$1" away`,
		`kill -0 $(cat "$1") || ln -sfT elsewhere "$1"`,
	} {
		for _, dir := range []string{c.Net.Dir(), c.Mount} {
			s := testcluster.StartShell(t, holder, dir)
			s.Must("rm -f lock; " + testcluster.PidContent + " > lock")
			content := s.Must("cat lock")
			_, err := other.Run("env", "--chdir="+dir, "sh", "-c", stale, "sh", "lock")
			now, _ := s.Do("cat lock 2>&1")
			if dir == c.Mount {
				require.Error(t, err, stale)
				require.Equal(t, content, now, stale)
				s.Must("rm lock")
			} else {
				require.NotEqual(t, content, now, "%s on the local disk", stale)
			}
			s.Process.Kill()
		}
	}
}

// TestWrongClocks gives one voter, and a client, clocks that are an hour off. Cluster time stays right,
// whoever leads.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(wrong.String(), func(t *testing.T) {
			t.Parallel()
			c := testcluster.StartCluster(t, 3)
			odd := c.Nodes[0]
			odd.Stop(t)
			odd.SetClock(t, wrong)
			odd.Start(t)
			g := c.AddGuest(t, "m")
			g.SetClock(t, wrong)
			g.Start(t)

			last := 0.0
			requireRightTime := func() {
				t.Helper()
				var stamp, now float64
				out := g.Host.MustRun(t, "sh", "-c", "touch $1; stat -c %.9Y $1; date +%s.%N", "sh", c.Path("clock"))
				_, err := fmt.Sscan(out, &stamp, &now)
				require.NoError(t, err, out)
				require.InDelta(t, now, stamp, 60)
				require.Greater(t, stamp, last, "went back")
				last = stamp
			}
			requireRightTime()
			for c.Leader() != odd {
				old := c.Leader()
				old.Kill()
				requireRightTime()
				old.Start(t)
			}
			requireRightTime()
			c.Nodes[1].AwaitSession(t, "m", "the client's clock against cluster time", func(s []testcluster.Session) bool {
				return testcluster.OneSession(s) && math.Abs(s[0].ClockOffset-wrong.Seconds()) < 5
			})
			require.NoError(t, g.Daemon.Stop())
		})
	}
}
