package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// loseDisk kills a server, and leaves its host as it is after a boot with an empty disk.
func loseDisk(t testing.TB, c *testcluster.Cluster, n *testcluster.Node) {
	t.Helper()
	n.Kill()
	c.AwaitDeadMount(t, n.Host)
	n.Host.MustRun(t, "umount", "--lazy", c.Mount)
	require.NoError(t, os.RemoveAll(n.Data))
	n.Host.MustRun(t, "sh", "-c", "rm -f /run/lockfs/*")
}

// TestAServerThatLostItsDiskMakesNoCluster starts it with the command line that it always had, while another server holds a lock. It ends, and says
// how it joins again; having joined it sees the lock.
func TestAServerThatLostItsDiskMakesNoCluster(t *testing.T) {
	t.Parallel()
	for kind, secure := range map[string]bool{"insecure": false, "secure": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := testcluster.NewCluster(t)
			c.Secure = secure
			for range 3 {
				n := c.Add(t)
				n.Start(t)
			}
			lost, holder := c.Nodes[0], c.Nodes[1]
			holder.Host.MustRun(t, "sh", "-c", "set -C; > "+c.Path("deploy.lock"))
			loseDisk(t, c, lost)

			lost.Launch()
			require.ErrorContains(t, lost.Server.Wait(), "exit status 4", "which systemd does not restart")
			require.Contains(t, lost.Server.Log(), "data directory "+lost.Data+" belongs to no cluster")
			require.Contains(t, lost.Server.Log(), "to join one, give --token")
			require.NotContains(t, lost.Server.Log(), "ready")
			require.NoDirExists(t, lost.Data)
			_, err := lost.Host.Run("sh", "-c", "set -C; > "+c.Path("deploy.lock"))
			require.ErrorContains(t, err, "Read-only file system", "nothing is mounted")

			lost.Server = nil
			_, err = holder.Lockfs("member", "remove", lost.Name)
			require.NoError(t, err)
			lost.Flags = []string{"--join", holder.Addr()}
			if secure {
				lost.Flags = []string{"--token", c.NewJoinToken(t, "--role", "server", "--host", lost.Name)}
			}
			lost.Start(t)
			_, err = lost.Host.Run("sh", "-c", "set -C; > "+c.Path("deploy.lock"))
			require.ErrorContains(t, err, "exist", "it is held")
		})
	}
}

// TestAMountOfTwoClustersIsRefused: it is given servers of both, and the error names which server belongs to which. status and doctor say so too.
func TestAMountOfTwoClustersIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.StartInsecureCluster(t, 3)
	wrong := c.Nodes[2]
	loseDisk(t, c, wrong)
	wrong.Init(t)
	made, err := wrong.Host.Run(c.Program, "server", "init", "--name", wrong.Name, "--data", wrong.Data, "--addr", wrong.Addr(), "--insecure")
	require.ErrorContains(t, err, "belongs to cluster", made)
	wrong.Start(t)

	client := c.AddClient(t, "m")
	for _, servers := range []string{c.Servers(), strings.Join([]string{wrong.Addr(), c.Nodes[0].Addr()}, ",")} {
		p := client.Start(c.Program, append([]string{"mount", c.Mount}, c.MountFlags(t, "m", servers)...)...)
		require.Error(t, p.Wait())
		require.Contains(t, p.Log(), "the servers belong to 2 clusters")
		require.Contains(t, p.Log(), wrong.Addr()+" to cluster ")
		require.Regexp(t, c.Nodes[0].Addr()+`(, [^ ]*)? to cluster `, p.Log())
		require.Zero(t, testcluster.CountMounts(t, client, c.Mount))
	}
	asked := []string{"--servers", c.Servers(), "--insecure"}
	require.Contains(t, client.MustRun(t, c.Program, append([]string{"status"}, asked...)...), "the servers belong to 2 clusters")
	var status struct {
		Clusters map[string][]string `json:"clusters"`
	}
	require.NoError(t, json.Unmarshal([]byte(client.MustRun(t, c.Program, append([]string{"status", "--json"}, asked...)...)), &status))
	require.Len(t, status.Clusters, 2)
	said := client.MustRun(t, "sh", append([]string{"-c", `"$0" doctor "$@" || :`, c.Program}, asked...)...)
	require.Contains(t, said, "the servers belong to 2 clusters")

	// On a server of the larger cluster, without a flag: its member answers as another cluster's server.
	own := c.Nodes[0].Host.MustRun(t, c.Program, "status")
	require.Contains(t, own, "the servers belong to 2 clusters")
	one := c.MountOn(t, client, c.Nodes[0].Addr()+","+c.Nodes[1].Addr())
	testcluster.RequireLocking(t, c, client, c.Nodes[0].Host)
	require.NoError(t, one.Stop())
}

// TestServerInitIsRepeatedWhereItWasKilled kills it at each call that makes something durable, or gives it its name. A server that is started
// on an incomplete directory makes no cluster. The next attempt makes one, and its server works. After the last such call the cluster is
// complete.
func TestServerInitIsRepeatedWhereItWasKilled(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	h, program := net.Host("a"), testcluster.Program(t)
	const ready = "lockfs: a ready\n"
	refused := 0
	for n, killed := 1, true; killed; n++ {
		data := filepath.Join(net.Dir(), fmt.Sprint("data", n))
		of := []string{"--name", "a", "--data", data, "--addr", h.Addr() + ":7420"}
		server := append([]string{"server", "--http-addr", ""}, of...)
		init := append([]string{program, "server", "init", "--json"}, of...)
		kill := fmt.Sprintf("inject=fsync,fdatasync,rename,renameat,renameat2,mkdirat:signal=SIGKILL:when=%d", n)
		_, err := h.Run("strace", append([]string{"-f", "-qq", "-o", "/dev/null", "-e", kill}, init...)...)
		killed = err != nil
		left := h.Start(program, server...)
		complete := left.WaitOutput(ready) == nil
		if complete {
			require.NoError(t, left.Stop())
		} else {
			refused++
			require.True(t, killed)
			require.Error(t, left.Wait(), n)
			require.Contains(t, left.Log(), "`lockfs server init`", n)
		}
		made, err := h.Run("sh", append([]string{"-c", `"$@"; e=$?; [ $e = 0 ] || { [ $e = 3 ] && echo complete; }`, "sh"}, init...)...)
		require.NoError(t, err, n)
		require.Contains(t, made, map[bool]string{true: "complete", false: `"cluster": "`}[complete], n)
		p := h.Start(program, server...)
		require.NoError(t, p.WaitOutput(ready), n)
		hosts.Eventually(t, "the first token", func() (string, bool) { // once the authority is in the state
			out, err := h.Run(program, "token", "create", "--role", "client", "--servers", h.Addr()+":7420", "--identity", filepath.Join(data, "identity"))
			return fmt.Sprint(err), strings.HasPrefix(out, "lockfs-client-")
		})
		require.NoError(t, p.Stop())
	}
	require.Greater(t, refused, 5)
}
