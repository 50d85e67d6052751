package operation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestASecureClusterIsRestoredElsewhere loses all servers. A mount comes back with its identity when there is the seal key, and else with
// a new token; the old servers, started again on what they have, change nothing of either.
func TestASecureClusterIsRestoredElsewhere(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 3)
	a, b, old := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	client := c.AddClient(t, "m")
	mounted := c.MountOn(t, client, c.Servers())
	client.MustRun(t, "mkdir", c.Path("before"))
	file := filepath.Join(c.Net.Dir(), "locks.backup")

	_, err := client.Run(c.Program, "backup", file)
	require.ErrorContains(t, err, "that takes a server of this cluster, or root on one")
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755)) // for nobody to get to the socket
	program := installFor(t, b.Host, "nobody")
	_, err = b.Host.Run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "backup", "-")
	require.ErrorContains(t, err, "that takes a server of this cluster, or root on one")
	b.Host.MustRun(t, c.Program, "backup", "--servers", a.Addr(), "--identity", filepath.Join(b.Data, "identity"), file+".elsewhere")
	b.Host.MustRun(t, c.Program, "backup", file)
	var v struct {
		Cluster string `json:"cluster"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.Host.MustRun(t, c.Program, "backup", "verify", "--json", file)), &v))
	require.NotEmpty(t, v.Cluster)
	client.MustRun(t, "mkdir", c.Path("lost"))
	require.NoError(t, mounted.Stop())
	for _, n := range c.Nodes {
		n.Kill()
	}

	seal := filepath.Join(c.Net.Dir(), "ca.key")
	content, err := os.ReadFile(filepath.Join(old.Data, "ca.key"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(seal, content, 0o600))
	// It takes the name and the address of one of the old servers, which the others know.
	restore := []string{"restore", file, "--data", a.Data + ".new", "--name", a.Name, "--addr", a.Addr()}
	require.Contains(t, a.Host.MustRun(t, c.Program, append(restore, "--ca-key", seal)...), "return with their certificates")
	a.Data += ".new"
	for _, n := range []*testcluster.Node{b, old} {
		n.Launch()
	}
	a.Start(t)
	awaitMembers(t, a.Lockfs, a.Name)
	mounted = c.MountOn(t, client, "", "--servers", a.Addr())
	client.MustRun(t, "mkdir", c.Path("after"))
	hosts.Eventually(t, "the old servers are refused", func() (string, bool) {
		return a.Server.Log(), strings.Contains(a.Server.Log(), "revoked")
	})
	b.Kill()
	old.Kill()
	present := testcluster.ListDir(t, a, c.Mount)
	require.Contains(t, present, "before")
	require.Contains(t, present, "after")
	require.NotContains(t, present, "lost")
	require.NoError(t, mounted.Stop())

	a.Kill()
	restore[3] = a.Data + ".again"
	require.Contains(t, a.Host.MustRun(t, c.Program, restore...), "all hosts need new join tokens")
	a.Data += ".again"
	a.Start(t)
	require.NoError(t, os.RemoveAll(filepath.Join(c.Net.Dir(), "m.identity")))
	mounted = c.MountOn(t, client, a.Addr(), "--token", c.NewJoinToken(t, "--role", "client"))
	client.MustRun(t, "ls", c.Path("before"))
	testcluster.RequireLocking(t, c, client, a.Host)
	require.NoError(t, mounted.Stop())
}
