package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestARemovedServerGetsNoHost runs the program with the data of a server that were saved before it was removed: as they were, and as a cluster of
// their own. Hosts reach no other server then.
func TestARemovedServerGetsNoHost(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 3)
	mounting, joining := c.AddClient(t, "d"), c.AddClient(t, "e")
	mounted := c.MountOn(t, mounting, c.Servers())
	before := c.NewJoinToken(t, "--role", "client", "--uses", "9")
	removed, stay := c.Nodes[2], c.Nodes[:2]
	removed.Stop(t)
	saved := filepath.Join(c.Net.Dir(), "saved")
	require.NoError(t, os.CopyFS(saved, os.DirFS(removed.Data)))
	for _, secret := range []string{"ca.key", "identity"} {
		require.NoError(t, os.Chmod(filepath.Join(saved, secret), 0o700))
	}
	stay[0].Host.MustRun(t, "find", saved, "-type", "f", "-exec", "chmod", "600", "{}", "+")
	stay[0].Host.MustRun(t, c.Program, "member", "remove", removed.Name)
	roster := filepath.Join(c.IdentityDir("d"), "roster")
	hosts.Eventually(t, "the mount has kept that the server was removed", func() (string, bool) {
		content, err := os.ReadFile(roster)
		return fmt.Sprint(string(content), err), err == nil && strings.Contains(string(content), "revoked ")
	})
	require.NoError(t, mounted.Stop())

	removed.Data = saved
	routes := func(do string) { // that fail at once
		for _, host := range []*hosts.Host{removed.Host, mounting, joining} {
			for _, n := range stay {
				host.MustRun(t, "ip", "route", do, "unreachable", n.Host.Addr())
			}
		}
	}
	routes("add")
	cannotMount := func(host *hosts.Host, why string, flags ...string) {
		t.Helper()
		out, err := host.Run(c.Program, append([]string{"mount", c.Mount, "--wait", "2s"}, flags...)...)
		require.ErrorContains(t, err, why, out)
	}
	isRefused := func(joiner string) {
		t.Helper()
		cannotMount(mounting, "revoked", "--identity", c.IdentityDir("d"), "--servers", removed.Addr())
		cannotMount(joining, joiner, "--identity", c.IdentityDir("e"), "--token", before)
		require.NoFileExists(t, filepath.Join(c.IdentityDir("e"), "host.pem"))
	}
	removed.Launch()
	hosts.Eventually(t, "it listens", func() (string, bool) {
		conn, err := mounting.Dial(removed.Addr())
		if err != nil {
			return err.Error(), false
		}
		return "", conn.Close() == nil
	})
	isRefused("does not prove that it is still a server")
	_, err := mounting.Run(c.Program, "locks", "--identity", c.IdentityDir("d"), "--servers", removed.Addr())
	require.ErrorContains(t, err, "revoked")

	removed.Kill()
	removed.Host.MustRun(t, c.Program, "server", "recover", "--data", saved)
	removed.Start(t)
	isRefused("the join token is not known") // the recovered cluster has none any more

	routes("del")
	c.MountOn(t, mounting, c.Servers()) // although the removed server answers, too
	c.MountOn(t, joining, "", "--token", before)
	testcluster.RequireLocking(t, c, mounting, stay[0].Host)
	testcluster.RequireLocking(t, c, joining, stay[1].Host)
}

// TestARotationReplacesTheSealKey has an attacker with the ca.key of a removed server and a later backup.
func TestARotationReplacesTheSealKey(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 2)
	stay, removed := c.Nodes[0], c.Nodes[1]
	stolen := filepath.Join(c.Net.Dir(), "ca.key")
	content, err := os.ReadFile(filepath.Join(removed.Data, "ca.key"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(stolen, content, 0o600))
	stay.Host.MustRun(t, c.Program, "member", "remove", removed.Name)
	stay.Host.MustRun(t, c.Program, "ca", "rotate")
	hosts.Eventually(t, "another seal key", func() (string, bool) {
		now, err := os.ReadFile(filepath.Join(stay.Data, "ca.key"))
		return fmt.Sprint(err), err == nil && string(now) != string(content)
	})
	backup := filepath.Join(c.Net.Dir(), "later.backup")
	stay.Host.MustRun(t, c.Program, "backup", backup)
	restore := func(key, dir string) (string, error) {
		return removed.Host.Run(c.Program, "restore", backup, "--data", filepath.Join(c.Net.Dir(), dir), "--name", "z",
			"--addr", removed.Host.Addr()+":7420", "--ca-key", key)
	}
	_, err = restore(stolen, "attacker")
	require.ErrorContains(t, err, "ca.key")
	_, err = restore(filepath.Join(stay.Data, "ca.key"), "operator")
	require.NoError(t, err)
}
