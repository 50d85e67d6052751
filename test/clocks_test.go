package test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
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
func (c *cluster) addTimed(t testing.TB, name string, offset time.Duration) timed {
	t.Helper()
	g := c.addGuest(t, name)
	g.environment = []string{"LOCKFS_TEST_CLOCK_OFFSET=" + offset.String()}
	// faketime leaves files there for programs that are killed, named after their pid.
	g.host.MustRun(t, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
	g.start(t)
	c.nodes[0].awaitSession(t, name, "the host's clock is known", func(s []session) bool {
		return one(s) && math.Abs(s[0].ClockOffset-offset.Seconds()) < 5
	})
	return timed{g.host, offset}
}

// TestLocksUnderWrongClocks has hosts whose clocks differ by two hours judge each other's locks.
func TestLocksUnderWrongClocks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	all := []timed{
		{host: c.nodes[0].host},
		c.addTimed(t, "fast", time.Hour),
		c.addTimed(t, "slow", -time.Hour),
	}
	c.nodes[0].host.MustRun(t, "mkdir", c.path("live"), c.path("stale"))
	c.nodes[0].set(t, "live/*", "--stale-after", "30m")
	c.nodes[0].set(t, "stale/*", "--stale-after", "1s")

	// On a local disk, who has a later clock breaks a live lock.
	disk := c.net.Dir()
	_, err := all[2].run(disk, takeSemaphore, "lock")
	require.NoError(t, err)
	said, err := all[0].run(disk, breakSemaphore, "lock", "1800")
	require.NoError(t, err)
	require.Equal(t, "broken\n", said)

	for _, holder := range all {
		name := holder.host.Name()
		_, err := holder.run(c.mount, takeSemaphore, "live/"+name)
		require.NoError(t, err)
		_, err = holder.run(c.mount, takeSemaphore, "stale/"+name)
		require.NoError(t, err)
		for _, other := range all {
			if other == holder {
				continue
			}
			_, err := other.run(c.mount, breakSemaphore, "live/"+name, "1800")
			if other.offset > holder.offset {
				require.ErrorContains(t, err, "Device or resource busy")
			} else {
				require.NoError(t, err)
			}
			c.requireHeld(t, "live/"+name, other.host)
		}
		holder.host.MustRun(t, "rm", c.path("live", name))
	}
	for i, holder := range all {
		other := all[(i+1)%len(all)]
		lock := filepath.Join("stale", holder.host.Name())
		c.awaitState(t, other.host, lock, "stale")
		said, err := other.run(c.mount, breakSemaphore, lock, "-8000")
		require.NoError(t, err)
		assert.Equal(t, "broken\n", said)
	}
}

// TestLiveLockIsNotBroken asks programs on the wrong host whether a lock's process is alive.
func TestLiveLockIsNotBroken(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	holder, other := c.nodes[0].host, c.nodes[1].host
	holder.MustRun(t, "sh", "-c", "echo 20000 > /proc/sys/kernel/ns_last_pid") // pids that the other has not
	for _, stale := range []string{
		`lockfile-create --use-pid --retry 0 --lock-name "$1"`,
		`kill -0 $(cat "$1") || rm "$1"`,
		`kill -0 $(cat "$1") || { echo $$ > tmp; mv tmp "$1"; }`,
		`kill -0 $(cat "$1") || echo $$ > "$1"`,
		`kill -0 $(cat "$1") || mv "$1" away`,
		`kill -0 $(cat "$1") || ln -sfT elsewhere "$1"`,
	} {
		for _, dir := range []string{c.net.Dir(), c.mount} {
			s := startShell(t, holder, dir)
			s.must("rm -f lock; " + pidContent + " > lock")
			content := s.must("cat lock")
			_, err := other.Run("env", "--chdir="+dir, "sh", "-c", stale, "sh", "lock")
			now, _ := s.do("cat lock 2>&1")
			if dir == c.mount {
				require.Error(t, err, stale)
				require.Equal(t, content, now, stale)
				s.must("rm lock")
			} else {
				require.NotEqual(t, content, now, "%s on the local disk", stale)
			}
			s.process.Kill()
		}
	}
}

// TestWrongClocks gives one voter, and a client, clocks that are an hour off. Cluster time stays right,
// whoever leads.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"1h", "-1h"} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 3)
			odd := c.nodes[0]
			odd.stop(t)
			odd.environment = []string{"LOCKFS_TEST_CLOCK_OFFSET=" + wrong}
			odd.start(t)
			h := c.client(t, "m")
			p := h.Start("env", "LOCKFS_TEST_CLOCK_OFFSET="+wrong, c.program, "mount", "--servers", c.servers(), c.mount)
			require.NoError(t, p.WaitOutput("lockfs: ready at "))

			last := 0.0
			requireRightTime := func() {
				t.Helper()
				var stamp, now float64
				out := h.MustRun(t, "sh", "-c", "touch $1; stat -c %.9Y $1; date +%s.%N", "sh", c.path("clock"))
				_, err := fmt.Sscan(out, &stamp, &now)
				require.NoError(t, err, out)
				require.InDelta(t, now, stamp, 5)
				require.Greater(t, stamp, last, "went back")
				last = stamp
			}
			requireRightTime()
			for c.leader() != odd {
				old := c.leader()
				old.kill()
				requireRightTime()
				old.start(t)
			}
			requireRightTime()
			want, err := time.ParseDuration(wrong)
			require.NoError(t, err)
			c.nodes[1].awaitSession(t, "m", "the client's clock against cluster time", func(s []session) bool {
				return one(s) && math.Abs(s[0].ClockOffset-want.Seconds()) < 5
			})
			require.NoError(t, p.Stop())
		})
	}
}
