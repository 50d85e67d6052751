package test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// startTower starts a shell that knows clients/tower.sh.
func (c *cluster) startTower(t testing.TB, h *hosts.Host) *shell {
	t.Helper()
	script := ClientPath(t, "tower.sh")
	s := startShell(t, h, c.mount)
	s.must(". " + script)
	return s
}

// TestTowerHeartbeat renews locks with jq and mv, and goes on with it when a lock has been stolen.
func TestTowerHeartbeat(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	here, elsewhere := c.nodes[0].host, c.nodes[1].host
	seen := func() string { return c.nodes[2].host.MustRun(t, "cat", c.path("app.lock")) }

	for _, steal := range []struct{ name, command string }{
		{"removed and made anew", "steal app other 900"},
		{"renamed over", "create_lock_json app other 900 > mine; mv mine app.lock"},
		{"written over", "create_lock_json app other 900 > app.lock"},
	} {
		t.Run(steal.name, func(t *testing.T) {
			holder, thief := c.startTower(t, here), c.startTower(t, elsewhere)
			holder.must("acquire app mine 900; cat app.lock > " + filepath.Join(c.net.Dir(), "copy"))
			token := c.token(t, here, "app.lock")
			taken := c.xattr(t, here, "app.lock", "renewed")
			hosts.Eventually(t, "a heartbeat in another second", func() (string, bool) {
				holder.must("update_heartbeat app")
				renewed := c.xattr(t, elsewhere, "app.lock", "renewed")
				return renewed, renewed != taken
			})
			require.Equal(t, token, c.token(t, elsewhere, "app.lock"), "a heartbeat keeps the token")
			thief.fails(steal.command, "Device or resource busy") // it is live
			require.Contains(t, seen(), `"mine"`)

			holder.must(`jq '.ttl_seconds = 1' app.lock > short && mv short app.lock`)
			c.awaitState(t, elsewhere, "app.lock", "stale")
			require.Equal(t, token, c.token(t, elsewhere, "app.lock"))
			stale := seen()
			thief.must("cat app.lock; " + steal.command)
			stolen := seen()
			require.Contains(t, stolen, `"other"`)
			next := c.token(t, elsewhere, "app.lock")
			require.Greater(t, next, token)

			refusals := c.nodes[0].refusals(t)
			holder.fails("update_heartbeat app "+filepath.Join(c.net.Dir(), "copy"), "Stale file handle")
			holder.must("rm -f app.lock app.lock.heartbeat.tmp")
			require.Equal(t, stolen, seen())
			require.Equal(t, next, c.token(t, elsewhere, "app.lock"))
			require.GreaterOrEqual(t, c.nodes[0].refusals(t), refusals+2)
			// Having read it, it tries to renew a lock that is not its own.
			holder.fails("update_heartbeat app", "Device or resource busy")
			require.Equal(t, stolen, seen())

			events := c.nodes[0].events(t)
			if steal.name != "removed and made anew" {
				event := lastEvent(t, events, "lock_stolen", "app.lock")
				assert.Equal(t, next, event.Token)
				assert.Equal(t, "other", event.Holder)
				require.NotNil(t, event.Previous)
				assert.Equal(t, token, event.Previous.Token)
				assert.Equal(t, "mine", event.Previous.Holder)
				if steal.name == "renamed over" {
					assert.Equal(t, sha256Of(stale), event.PreviousHash)
				}
			}
			thief.must("rm app.lock")
			holder.process.Kill()
			thief.process.Kill()
		})
	}
}
