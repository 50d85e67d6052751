package testcluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Facts is what a host says about a lock, in .lockfs/kv.
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

// Token is the fencing token of a lock, as any program can ask for it.
func (c *Cluster) Token(t testing.TB, h *hosts.Host, lock string) uint64 {
	t.Helper()
	token, err := strconv.ParseUint(c.Xattr(t, h, lock, "token"), 10, 64)
	require.NoError(t, err)
	return token
}

// Xattr is an extended attribute user.lockfs.NAME of a lock. A heartbeat may put another file in its place just after the kernel has found it.
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

// AwaitState waits until a lock is in a state, as seen on a host.
func (c *Cluster) AwaitState(t testing.TB, h *hosts.Host, lock, state string) {
	t.Helper()
	hosts.Eventually(t, lock+" is "+state, func() (string, bool) {
		facts, err := c.Facts(h, lock)
		return fmt.Sprint(facts, err), err == nil && facts["state"] == state
	})
	require.Equal(t, state, c.Xattr(t, h, lock, "state"))
}

// RequireHeld requires that a lock is there and held, as seen on some hosts.
func (c *Cluster) RequireHeld(t testing.TB, lock string, on ...*hosts.Host) {
	t.Helper()
	for _, h := range on {
		h.MustRun(t, "stat", c.Path(lock))
		facts, err := c.Facts(h, lock)
		require.NoError(t, err)
		require.Equal(t, "held", facts["state"], "%s on %s: %v", lock, h.Name(), facts)
	}
}

// AwaitGone waits until a lock is gone on some hosts.
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

// What holders write.
const (
	PidContent       = `echo $$`
	SemaphoreContent = `printf 'pid=%d\ntimestamp=%d\n' $$ "$(date +%s)"`
	BeadsContent     = `printf '{"holder":"me","pid":%d,"hostname":"%s","started_at":"%s"}\n' $$ "$(hostname)" "$(date -u +%FT%TZ)"`
)

// StartHolder starts a process that takes a lock and has it until it is told otherwise, or ends.
func (c *Cluster) StartHolder(t testing.TB, h *hosts.Host, lock, content string) *Shell {
	t.Helper()
	s := StartShell(t, h, c.Mount)
	s.Must(fmt.Sprintf("set -C; %s > %s; set +C", content, lock))
	return s
}
