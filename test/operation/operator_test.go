package operation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestAnOperatorSeesLocksAndMounts in the metrics of a server and of a mount, and what lockfs doctor says of a mount whose
// processes were killed.
func TestAnOperatorSeesLocksAndMounts(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	client := c.AddClient(t, "client")
	const address = "127.0.0.1:7424"
	mount := c.MountOn(t, client, c.Servers(), "--http-addr", address)
	client.MustRun(t, "sh", "-c", "set -C; echo $$ > "+c.Path("a.lock")+"; mkdir "+c.Path("b.lock"))
	holder := client.Start("flock", c.Path("c.lock"), "sh", "-c", "echo held; exec sleep 1000")
	require.NoError(t, holder.WaitOutput("held"))
	client.Start("flock", c.Path("c.lock"), "true")

	hosts.Eventually(t, "locks are counted", func() (string, bool) {
		metrics, err := c.Nodes[0].Get("/metrics")
		require.NoError(t, err)
		has := true
		for _, line := range []string{
			"lockfs_lock_directories 1", "lockfs_kernel_locks 1", "lockfs_kernel_lock_waiters 1", `lockfs_hosts{state="mounted"} 4`, "lockfs_sessions 4",
			`lockfs_events_total{event="lock_acquired"} 2`,
		} {
			has = has && strings.Contains(metrics, "\n"+line+"\n")
		}
		return metrics, has
	})
	metrics, err := testcluster.Get(client, "http://"+address+"/metrics")
	require.NoError(t, err)
	for _, line := range []string{"\nlockfs_mounts 1\n", `lockfs_mount_operations_seconds_count{operation="create",result="OK"} `, "\nlockfs_build_info{"} {
		require.Contains(t, metrics, line)
	}
	require.NotContains(t, metrics, "lockfs_mount_session_remaining_seconds 0\n")
	health, err := testcluster.Get(client, "http://"+address+"/healthz")
	require.NoError(t, err)
	require.Contains(t, health, "200 ok")

	client.Cut()
	hosts.Eventually(t, "the mount says that it is cut off", func() (string, bool) {
		health, err := testcluster.Get(client, "http://"+address+"/healthz")
		require.NoError(t, err)
		return health, strings.HasPrefix(health, "503 unavailable: ")
	})
	client.Heal()

	mount.Kill()
	c.AwaitDeadMount(t, client)
	report, err := client.Run(c.Program, append([]string{"doctor"}, c.MountFlags(t, client.Name(), c.Servers())...)...)
	require.Error(t, err, "the exit code says that something failed")
	require.Contains(t, report, c.Mount+" is dead (Transport endpoint is not connected)")
	require.Contains(t, report, "server "+c.Nodes[2].Name+" ("+c.Nodes[2].Addr()+") answers")
}
