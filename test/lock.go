package test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// facts is what a host says about a lock, in .lockfs/kv.
func (c *cluster) facts(h *hosts.Host, lock string) (map[string]string, error) {
	text, err := h.Run("cat", c.path(".lockfs/kv", lock))
	if err != nil {
		return nil, err
	}
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		facts[key] = value
	}
	return facts, nil
}

// token is the fencing token of a lock, as any program can ask for it.
func (c *cluster) token(t testing.TB, h *hosts.Host, lock string) uint64 {
	t.Helper()
	token, err := strconv.ParseUint(c.xattr(t, h, lock, "token"), 10, 64)
	require.NoError(t, err)
	return token
}

func (c *cluster) xattr(t testing.TB, h *hosts.Host, lock, name string) string {
	t.Helper()
	const get = `import os, sys; print(os.getxattr(sys.argv[1], "user.lockfs." + sys.argv[2]).decode(), end="")`
	return h.MustRun(t, "python3", "-c", get, c.path(lock), name)
}

// awaitState waits until a lock is in a state, as seen on a host.
func (c *cluster) awaitState(t testing.TB, h *hosts.Host, lock, state string) {
	t.Helper()
	hosts.Eventually(t, lock+" is "+state, func() (string, bool) {
		facts, err := c.facts(h, lock)
		return fmt.Sprint(facts, err), err == nil && facts["state"] == state
	})
	require.Equal(t, state, c.xattr(t, h, lock, "state"))
}

// requireHeld requires that a lock is there and held, as seen on some hosts.
func (c *cluster) requireHeld(t testing.TB, lock string, on ...*hosts.Host) {
	t.Helper()
	for _, h := range on {
		h.MustRun(t, "stat", c.path(lock))
		facts, err := c.facts(h, lock)
		require.NoError(t, err)
		require.Equal(t, "held", facts["state"], "%s on %s: %v", lock, h.Name(), facts)
	}
}

// awaitGone waits until a lock is gone on some hosts.
func (c *cluster) awaitGone(t testing.TB, lock string, on ...*hosts.Host) {
	t.Helper()
	for _, h := range on {
		hosts.Eventually(t, lock+" is gone on "+h.Name(), func() (string, bool) {
			facts, err := h.Run("sh", "-c", `[ ! -e "$1" ] || { cat "$2"; exit 1; }`, "sh",
				c.path(lock), c.path(".lockfs/kv", lock))
			return facts, err == nil
		})
	}
}

// set sets a rule.
func (n *node) set(t testing.TB, pattern string, flags ...string) {
	t.Helper()
	_, err := n.lockfs(append([]string{"rule", "set", pattern}, flags...)...)
	require.NoError(t, err)
}

// What holders write.
const (
	pidContent       = `echo $$`
	semaphoreContent = `printf 'pid=%d\ntimestamp=%d\n' $$ "$(date +%s)"`
	beadsContent     = `printf '{"holder":"me","pid":%d,"hostname":"%s","started_at":"%s"}\n' $$ "$(hostname)" "$(date -u +%FT%TZ)"`
)

// holder starts a process that takes a lock and has it until it is told otherwise, or ends.
func (c *cluster) holder(t testing.TB, h *hosts.Host, lock, content string) *shell {
	t.Helper()
	s := startShell(t, h, c.mount)
	s.must(fmt.Sprintf("set -C; %s > %s; set +C", content, lock))
	return s
}
