package protocols

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// startTower starts a shell that knows clients/tower.sh.
func startTower(t testing.TB, c *testcluster.Cluster, h *hosts.Host) *testcluster.Shell {
	t.Helper()
	script := testcluster.ClientPath(t, "tower.sh")
	s := testcluster.StartShell(t, h, c.Mount)
	s.Must(". " + script)
	return s
}

// TestTowerHeartbeat renews locks with jq and mv, and goes on with it when a lock has been stolen.
func TestTowerHeartbeat(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	here, elsewhere := c.Nodes[0].Host, c.Nodes[1].Host
	seen := func() string { return c.Nodes[2].Host.MustRun(t, "cat", c.Path("app.lock")) }

	for _, steal := range []struct{ name, command string }{
		{"removed and made anew", "steal app other 900"},
		{"renamed over", "create_lock_json app other 900 > mine; mv mine app.lock"},
		{"written over", "create_lock_json app other 900 > app.lock"},
	} {
		t.Run(steal.name, func(t *testing.T) {
			holder, thief := startTower(t, c, here), startTower(t, c, elsewhere)
			holder.Must("acquire app mine 900; cat app.lock > " + filepath.Join(c.Net.Dir(), "copy"))
			token := c.Token(t, here, "app.lock")
			taken := c.Xattr(t, here, "app.lock", "renewed")
			hosts.Eventually(t, "a heartbeat in another second", func() (string, bool) {
				holder.Must("update_heartbeat app")
				renewed := c.Xattr(t, elsewhere, "app.lock", "renewed")
				return renewed, renewed != taken
			})
			require.Equal(t, token, c.Token(t, elsewhere, "app.lock"), "a heartbeat keeps the token")
			thief.Fails(steal.command, "Device or resource busy") // it is live
			require.Contains(t, seen(), `"mine"`)

			holder.Must(`jq '.ttl_seconds = 1' app.lock > short && mv short app.lock`)
			c.AwaitState(t, elsewhere, "app.lock", "stale")
			require.Equal(t, token, c.Token(t, elsewhere, "app.lock"))
			stale := seen()
			thief.Must("cat app.lock; " + steal.command)
			stolen := seen()
			require.Contains(t, stolen, `"other"`)
			next := c.Token(t, elsewhere, "app.lock")
			require.Greater(t, next, token)

			refusals := c.Nodes[0].Refusals(t)
			holder.Fails("update_heartbeat app "+filepath.Join(c.Net.Dir(), "copy"), "Stale file handle")
			holder.Must("rm -f app.lock app.lock.heartbeat.tmp")
			require.Equal(t, stolen, seen())
			require.Equal(t, next, c.Token(t, elsewhere, "app.lock"))
			require.GreaterOrEqual(t, c.Nodes[0].Refusals(t), refusals+2)
			// Having read it, it tries to renew a lock that is not its own.
			holder.Fails("update_heartbeat app", "Device or resource busy")
			require.Equal(t, stolen, seen())

			events := c.Nodes[0].Events(t)
			if steal.name != "removed and made anew" {
				event := testcluster.LastEvent(t, events, "lock_stolen", "app.lock")
				assert.Equal(t, next, event.Token)
				assert.Equal(t, "other", event.Holder)
				require.NotNil(t, event.Previous)
				assert.Equal(t, token, event.Previous.Token)
				assert.Equal(t, "mine", event.Previous.Holder)
				if steal.name == "renamed over" {
					assert.Equal(t, testcluster.SHA256Of(stale), event.PreviousHash)
				}
			}
			thief.Must("rm app.lock")
			holder.Process.Kill()
			thief.Process.Kill()
		})
	}
}
