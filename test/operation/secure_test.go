package operation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestServersAndAMountWithCertificates has hosts come in with tokens, and makes and takes locks on all of them.
func TestServersAndAMountWithCertificates(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 3)
	client := c.AddClient(t, "d")
	mounted := c.MountOn(t, client, c.Servers())
	hosts := append(c.Hosts(), client)
	for i, host := range hosts {
		host.MustRun(t, "mkdir", c.Path("lock"))
		other := hosts[(i+1)%len(hosts)]
		_, err := other.Run("mkdir", c.Path("lock"))
		require.ErrorContains(t, err, "File exists")
		other.MustRun(t, "rmdir", c.Path("lock"))
	}
	for _, host := range hosts {
		require.NotContains(t, host.MustRun(t, c.Program, "status"), "insecure", "it needs no flags")
	}
	_, err := client.Run(c.Program, "rule", "set", "x/*", "--guard", "host")
	require.ErrorContains(t, err, "that takes a server of this cluster, or root on one")
	_, err = client.Run(c.Program, "status", "--servers", c.Nodes[1].Addr(), "--insecure")
	require.ErrorContains(t, err, "without --insecure")

	// A mount and a server come back with what they have.
	require.NoError(t, mounted.Stop())
	mounted = c.MountOn(t, client, "")
	c.Nodes[2].Kill()
	c.Nodes[2].Start(t)
	testcluster.RequireLocking(t, c, client, c.Nodes[2].Host)

	c.Nodes[0].Host.MustRun(t, c.Program, "host", "revoke", "d")
	_, err = client.Run("mkdir", c.Path("lock"))
	require.Error(t, err, "it is shut out")
	c.RequireService(t, c.Nodes[1])
	require.NoError(t, mounted.Stop())
}
