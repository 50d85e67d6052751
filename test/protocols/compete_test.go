package protocols

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// compete has programs of several kinds take one lock for some rounds each, one of each kind on each node. Each kind
// is a command that is called like the shell clients (see clients/worker.sh).
func compete(t testing.TB, c *testcluster.Cluster, kinds map[string][]string, rounds int) {
	t.Helper()
	j := &testcluster.Job{
		Client: testcluster.Client{Name: t.Name()}, Dir: c.Path("contended"),
		Witness: testcluster.NewWitness(t, filepath.Join(c.Net.Dir(), "witness")),
	}
	c.Nodes[0].Host.MustRun(t, "mkdir", "-m", "700", j.Dir)
	for kind, command := range kinds {
		for _, n := range c.Nodes {
			name := kind + "-" + n.Name
			args := append(command[1:len(command):len(command)], j.Dir, j.Witness.Dir, name, fmt.Sprint(rounds))
			j.Names = append(j.Names, name)
			j.Workers = append(j.Workers, n.Host.Start(command[0], args...))
		}
	}
	j.Witness.Stop(t)
	j.Wait(t)
	require.Empty(t, j.Witness.Verdict(t))
	require.Equal(t, rounds*len(j.Workers), j.Witness.Rounds(t, ""))
	for _, n := range c.Nodes {
		assert.Empty(t, j.Errors(n.Host), "errors on %s", n.Name)
		require.Empty(t, n.Host.MustRun(t, "ls", "-A", j.Dir), "left over, seen on %s", n.Name)
	}
	c.RequireSameState(t)
}
