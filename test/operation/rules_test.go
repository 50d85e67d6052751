package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestRuleCommands sets, lists and deletes rules.
func TestRuleCommands(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	rules := func() (patterns []string) {
		text, err := b.Lockfs("rule", "list", "--json")
		require.NoError(t, err)
		var list []struct {
			Pattern string `json:"pattern"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &list), text)
		for _, rule := range list {
			patterns = append(patterns, rule.Pattern)
		}
		return patterns
	}
	require.Empty(t, rules())
	a.SetRule(t, "*.lock", "--stale-after", "10m", "--on-stale", "remove")
	a.SetRule(t, "builds/**/*.pid", "--format", "pid", "--guard", "anyone", "--host-timeout", "1h30m")
	a.SetRule(t, "*.lock", "--stale-after", "20m")
	require.ElementsMatch(t, []string{"*.lock", "builds/**/*.pid"}, rules())
	text, err := b.Lockfs("rule", "list")
	require.NoError(t, err)
	for _, part := range []string{"*.lock", "20m", "builds/**/*.pid", "pid", "anyone", "1h30m"} {
		assert.Contains(t, text, part)
	}
	assert.NotContains(t, text, "remove", "replaced")

	for _, bad := range []struct {
		args []string
		says string
	}{
		{[]string{"set", "*.lock"}, "--stale-after"},
		{[]string{"set", "", "--guard", "host"}, "pattern"},
		{[]string{"set", "[", "--guard", "host"}, "pattern"},
		{[]string{"set", "/a//b", "--guard", "host"}, "pattern"},
		{[]string{"set", "*.lock", "--format", "floppy"}, "floppy"},
		{[]string{"set", "*.lock", "--guard", "owner"}, "owner"},
		{[]string{"set", "*.lock", "--on-stale", "burn"}, "burn"},
		{[]string{"set", "*.lock", "--stale-after", "10"}, "stale-after"},
		{[]string{"set", "*.lock", "--stale-after", "-1s"}, "stale-after"},
		{[]string{"set", "*.lock", "--host-timeout", "-1s"}, "host-timeout"},
		{[]string{"delete", "no-such-rule"}, "no-such-rule"},
	} {
		_, err := a.Lockfs(append([]string{"rule"}, bad.args...)...)
		assert.ErrorContains(t, err, bad.says, "%q", bad.args)
	}
	for _, pattern := range rules() {
		_, err := b.Lockfs("rule", "delete", pattern)
		require.NoError(t, err)
	}
	require.Empty(t, rules())
}

// TestRulesGovernLocks has rules decide when a lock is stale, what becomes of it and who may remove it.
func TestRulesGovernLocks(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	s := testcluster.StartShell(t, a.Host, c.Mount)

	t.Run("a script without stale logic", func(t *testing.T) {
		a.SetRule(t, "*.lock", "--stale-after", "1s", "--on-stale", "remove", "--any-file")
		s.Must("set -C; echo > touched.lock; touch -d '+1 hour' touched.lock; echo > crashed.lock; set +C")
		b.Host.MustRun(t, "sh", "-c", `set -C; cd "$1"; until echo mine > crashed.lock; do sleep 0.1; done`, "sh", c.Mount)
		hosts.Eventually(t, "the events tell", func() (string, bool) {
			told := testcluster.Story(a.Events(t), "crashed.lock")
			return fmt.Sprint(told), slices.Equal(told[:min(len(told), 4)], []string{"lock_acquired", "lock_stale", "lock_removed", "lock_acquired"})
		})
		c.RequireHeld(t, "touched.lock", b.Host)
		expires := c.Xattr(t, b.Host, "touched.lock", "expires")
		s.Must("touch -d '+2 hours' touched.lock")
		require.NotEqual(t, expires, c.Xattr(t, b.Host, "touched.lock", "expires"))
		s.Must("touch touched.lock")
		c.AwaitGone(t, "touched.lock", b.Host)
	})

	t.Run("guard", func(t *testing.T) {
		a.SetRule(t, "open/**/*", "--guard", "anyone")
		a.SetRule(t, "closed/*", "--guard", "host")
		s.Must("mkdir -p open/deep closed; echo $$ > open/deep/pid; echo me > closed/any; echo $$ > pid; echo me > any")
		for lock, free := range map[string]bool{"open/deep/pid": true, "closed/any": false, "pid": false, "any": true} {
			_, err := b.Host.Run("rm", c.Path(lock))
			if free {
				require.NoError(t, err, lock)
				continue
			}
			require.ErrorContains(t, err, "Device or resource busy", lock)
			s.Must("rm " + lock)
		}
	})
}

// TestForcedRemoval removes live locks from the wrong host.
func TestForcedRemoval(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	require.NoError(t, os.Chmod(filepath.Dir(c.Net.Dir()), 0o755)) // for nobody to get to the mount
	holder := testcluster.StartShell(t, a.Host, c.Mount)
	program := installFor(t, b.Host, "nobody")
	remove := func(user string, args ...string) error {
		command := append(asUser(t, user), append([]string{"env", "--chdir=" + c.Mount, program, "rm"}, args...)...)
		_, err := b.Host.Run(command[0], command[1:]...)
		return err
	}
	holder.Must("mkdir dir; set -C; echo $$ > dir/lock; echo $$ > other; set +C")
	token := c.Token(t, a.Host, "dir/lock")

	err := remove("root", "dir/lock")
	require.ErrorContains(t, err, "--force", "what to do")
	require.ErrorContains(t, err, "on a)", "why")
	require.ErrorContains(t, remove("nobody", "--force", "other"), "not permitted", "the directory is sticky")
	nobody := append(asUser(t, "nobody"), "rm", "-f", c.Path(".lockfs/force/other"))
	_, err = b.Host.Run(nobody[0], nobody[1:]...)
	require.ErrorContains(t, err, "not permitted")
	c.RequireHeld(t, "dir/lock", b.Host)
	c.RequireHeld(t, "other", b.Host)

	require.NoError(t, remove("root", "--force", "dir/lock"))
	c.AwaitGone(t, "dir/lock", a.Host)
	b.Host.MustRun(t, "rm", c.Path(".lockfs/force/other"))
	c.AwaitGone(t, "other", a.Host)
	require.Error(t, remove("root", "--force", "dir/lock"), "it is gone")

	event := testcluster.LastEvent(t, a.Events(t), "lock_removed", "dir/lock")
	assert.Equal(t, token, event.Token)
	assert.Equal(t, "a", event.Host)
	assert.Contains(t, event.Reason, "force")
	require.NotNil(t, event.By)
	assert.Equal(t, "b", event.By.Host)
	assert.Equal(t, 0, event.By.UID)

	// What nobody guards goes without.
	holder.Must("echo me > any")
	require.NoError(t, remove("root", "any"))
	require.Equal(t, "dir\n", holder.Must("ls -A"))
}
