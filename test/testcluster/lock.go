package testcluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Facts returns the facts of a lock from .lockfs/kv on a host.
func (c *Cluster) Facts(h *hosts.Host, lock string) (map[string]string, error) {
	text, err := h.Run("cat", c.Path(".lockfs/kv", lock))
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

// Token returns the fencing token of a lock, read like any program.
func (c *Cluster) Token(t testing.TB, h *hosts.Host, lock string) uint64 {
	t.Helper()
	token, err := strconv.ParseUint(c.Xattr(t, h, lock, "token"), 10, 64)
	require.NoError(t, err)
	return token
}

// Xattr returns the attribute user.lockfs.NAME of a lock. It retries, because a heartbeat may replace the
// file after the kernel's lookup.
func (c *Cluster) Xattr(t testing.TB, h *hosts.Host, lock, name string) (value string) {
	t.Helper()
	const get = `import os, sys; print(os.getxattr(sys.argv[1], "user.lockfs." + sys.argv[2]).decode(), end="")`
	hosts.Eventually(t, lock+" has "+name, func() (string, bool) {
		said, err := h.Run("python3", "-c", get, c.Path(lock), name)
		value = said
		return fmt.Sprint(said, err), err == nil
	})
	return value
}

// AwaitState waits until a lock has a state, read on a host.
func (c *Cluster) AwaitState(t testing.TB, h *hosts.Host, lock, state string) {
	t.Helper()
	hosts.Eventually(t, lock+" is "+state, func() (string, bool) {
		facts, err := c.Facts(h, lock)
		return fmt.Sprint(facts, err), err == nil && facts["state"] == state
	})
	require.Equal(t, state, c.Xattr(t, h, lock, "state"))
}

// RequireHeld requires a held lock, read on some hosts.
func (c *Cluster) RequireHeld(t testing.TB, lock string, on ...*hosts.Host) {
	t.Helper()
	for _, h := range on {
		h.MustRun(t, "stat", c.Path(lock))
		facts, err := c.Facts(h, lock)
		require.NoError(t, err)
		require.Equal(t, "held", facts["state"], "%s on %s: %v", lock, h.Name(), facts)
	}
}

// AwaitGone waits until some hosts see no such lock.
func (c *Cluster) AwaitGone(t testing.TB, lock string, on ...*hosts.Host) {
	t.Helper()
	for _, h := range on {
		hosts.Eventually(t, lock+" is gone on "+h.Name(), func() (string, bool) {
			facts, err := h.Run("sh", "-c", `[ ! -e "$1" ] || { cat "$2"; exit 1; }`, "sh",
				c.Path(lock), c.Path(".lockfs/kv", lock))
			return facts, err == nil
		})
	}
}

// SetRule sets a rule.
func (n *Node) SetRule(t testing.TB, pattern string, flags ...string) {
	t.Helper()
	_, err := n.Lockfs(append([]string{"rule", "set", "--yes", pattern}, flags...)...)
	require.NoError(t, err)
}

// Contents of locks.
const (
	PidContent       = `echo $$`
	SemaphoreContent = `printf 'pid=%d\ntimestamp=%d\n' $$ "$(date +%s)"`
	BeadsContent     = `printf '{"holder":"me","pid":%d,"hostname":"%s","started_at":"%s"}\n' $$ "$(hostname)" "$(date -u +%FT%TZ)"`
)

// StartHolder starts a process that acquires a lock and holds it until a further step or its end.
func (c *Cluster) StartHolder(t testing.TB, h *hosts.Host, lock, content string) *Shell {
	t.Helper()
	s := StartShell(t, h, c.Mount)
	s.Must(fmt.Sprintf("set -C; %s > %s; set +C", content, lock))
	return s
}
