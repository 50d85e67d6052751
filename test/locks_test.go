package test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// TestLocksAreListed has a lock file with a flock that another host waits for.
func TestLocksAreListed(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := c.nodes[0]
	g := c.addGuest(t, "m")
	g.start(t)
	holder, waiter := startShell(t, a.host, c.mount), startShell(t, g.host, c.mount)
	holder.must("mkdir jobs; (set -C; echo $$ > jobs/lock); echo x > data; (set -C; date > other); exec 9<> jobs/lock; flock 9")
	waiter.must("flock -s jobs/lock true 2> /dev/null & echo begun")

	type advisory struct {
		Kind, Type, State, Host string
	}
	var locks []struct {
		Path     string     `json:"path"`
		State    string     `json:"state"`
		Format   string     `json:"format"`
		Token    uint64     `json:"token"`
		Advisory []advisory `json:"advisory_locks"`
	}
	hosts.Eventually(t, "the queue is shown", func() (string, bool) {
		text, err := a.lockfs("locks", "jobs", "--json")
		require.NoError(t, err)
		locks = nil
		require.NoError(t, json.Unmarshal([]byte(text), &locks))
		return text, len(locks) == 1 && len(locks[0].Advisory) == 2
	})
	require.Equal(t, []any{"jobs/lock", "held", "none"}, []any{locks[0].Path, locks[0].State, locks[0].Format})
	require.NotZero(t, locks[0].Token)
	require.Equal(t, []advisory{
		{"flock", "exclusive", "held", "a"}, {"flock", "shared", "waiting", "m"},
	}, locks[0].Advisory)

	why := g.host.MustRun(t, "cat", c.path(".lockfs/why/jobs/lock"))
	require.Contains(t, why, "flock: exclusive, held by process")
	require.Contains(t, why, "flock: shared, waited for by process")
	text, err := a.host.Run(c.program, "locks", c.path("jobs"), "--servers", a.apiAddr())
	require.NoError(t, err)
	require.Contains(t, text, "jobs/lock")
	require.NotContains(t, text, "other")
	text, err = a.lockfs("locks")
	require.NoError(t, err)
	require.Contains(t, text, "other")
	require.NotContains(t, text, "data")

	holder.must("flock -u 9")
	waiter.must("wait")
}
