package security

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

const year = 365 * 24 * time.Hour

// TestClocksThatAreAYearOff gives one server, and a mount, clocks that are a year fast or slow. Whoever leads, hosts join, and
// renew their certificates when the authority changes, and nobody is locked out.
func TestClocksThatAreAYearOff(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"fast": year, "slow": -year} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.StartSecureCluster(t, 3)
			odd := c.Nodes[0]
			odd.Stop(t)
			odd.SetClock(t, wrong)
			odd.Start(t)
			m := c.AddGuest(t, "m")
			m.SetClock(t, wrong)
			m.Start(t)
			testcluster.RequireLocking(t, c, m.Host, odd.Host)
			for c.Leader() != odd {
				old := c.Leader()
				old.Kill()
				testcluster.RequireLocking(t, c, m.Host, odd.Host)
				old.Start(t)
			}
			right := c.AddGuest(t, "right")
			right.Start(t)
			wrongToo := c.Add(t) // a server whose clock is wrong before it has joined
			wrongToo.SetClock(t, wrong)
			wrongToo.Start(t)
			rotate(t, odd, daemonsOf(c, m, right)...)
			for _, n := range c.Nodes {
				testcluster.RequireLocking(t, c, m.Host, n.Host)
				testcluster.RequireLocking(t, c, n.Host, right.Host)
			}
			// They come back with what they have.
			require.NoError(t, m.Daemon.Stop())
			m.Start(t)
			odd.Kill()
			testcluster.RequireLocking(t, c, m.Host, right.Host)
			odd.Start(t)
			testcluster.RequireLocking(t, c, m.Host, odd.Host)
		})
	}
}

// TestAFounderWhoseClockIsSlow begins a cluster a year ago, until others who know better are the majority. All certificates that
// were given before have expired then.
func TestAFounderWhoseClockIsSlow(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t)
	c.Secure = true
	founder := c.Add(t)
	founder.SetClock(t, -year)
	founder.Start(t)
	m := c.AddGuest(t, "m")
	m.Start(t)
	for range 2 {
		c.Add(t).Start(t)
	}
	hosts.Eventually(t, "the mount has heard of all servers", func() (string, bool) {
		text, err := os.ReadFile(filepath.Join(c.IdentityDir("m"), "servers"))
		return string(text), err == nil && strings.Count(string(text), "\n") == len(c.Nodes)
	})
	for c.Leader() == founder {
		founder.Kill()
		testcluster.RequireLocking(t, c, m.Host, c.Nodes[1].Host)
		founder.Start(t)
	}
	late := c.AddGuest(t, "late", "--token", c.NewJoinToken(t, "--role", "client")) // the others have expired too
	late.Start(t)
	for _, n := range c.Nodes {
		testcluster.RequireLocking(t, c, m.Host, n.Host)
		testcluster.RequireLocking(t, c, n.Host, late.Host)
	}
	require.NoError(t, m.Daemon.Stop())
	m.Start(t)
	testcluster.RequireLocking(t, c, m.Host, founder.Host)
}
