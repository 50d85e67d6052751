package protocols

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestALockDirectoryWithItsOwnerInIt under --holder creator: why tells of it, and it goes with its creator. What else is in such a
// directory stays with it, as R's 00LOCK with the old version of a package.
func TestALockDirectoryWithItsOwnerInIt(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	a := c.Nodes[0]
	g := c.AddGuest(t, "m")
	g.Start(t)
	everywhere := append(c.Hosts(), g.Host)
	why := func(lock string, flags ...string) string {
		text, err := a.Host.Run(c.Program, append([]string{"why", c.Path(lock)}, flags...)...)
		require.NoError(t, err)
		return text
	}
	plain := testcluster.StartShell(t, g.Host, c.Mount)
	plain.Must("mkdir plain.lock; echo $$ >plain.lock/owner; mkdir data; echo x >data/x")
	require.Contains(t, why("plain.lock"), "lock: yes")
	require.Contains(t, why("data"), "lock: no")

	a.SetRule(t, "*.lock", "--holder", "creator")
	a.SetRule(t, "00LOCK*", "--holder", "creator")
	holder := testcluster.StartShell(t, g.Host, c.Mount)
	holder.Must("mkdir job.lock; echo $$ >job.lock/owner; mkdir 00LOCK-x; mkdir 00LOCK-x/x; echo Version: 1 >00LOCK-x/x/DESCRIPTION")
	awaitMakersEnds(t, c, g.Host, a.Host)
	for _, lock := range []string{"job.lock", "00LOCK-x"} {
		require.Contains(t, why(lock), "state: held")
		require.Contains(t, why(lock, "--json"), `"state":`)
		_, err := a.Host.Run("mv", c.Path(lock), c.Path("moved"))
		require.ErrorContains(t, err, "Device or resource busy")
	}
	holder.Process.Kill()
	c.AwaitGone(t, "job.lock", everywhere...)
	for _, h := range everywhere {
		h.MustRun(t, "cat", c.Path("00LOCK-x/x/DESCRIPTION"))
	}
	require.Contains(t, why("00LOCK-x"), "state: stale")
	require.Contains(t, why("00LOCK-x"), `stays until a program removes it: "x" in it is not a lock of the process that made it`)
	a.Host.MustRun(t, "rm", "-r", c.Path("00LOCK-x"))
	_, err := a.Host.Run(c.Program, "why", c.Mount)
	require.ErrorContains(t, err, "root of a mount")
}
