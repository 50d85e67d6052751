package test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contend has programs of several kinds take one lock for some rounds each, one of each kind on each node. Each kind
// is a command that is called like the shell clients (see clients/worker.sh).
func (c *cluster) contend(t testing.TB, kinds map[string][]string, rounds int) {
	t.Helper()
	j := &job{
		client: client{name: t.Name()}, dir: c.path("contended"),
		witness: newWitness(t, filepath.Join(c.net.Dir(), "witness")),
	}
	c.nodes[0].host.MustRun(t, "mkdir", "-m", "700", j.dir)
	for kind, command := range kinds {
		for _, n := range c.nodes {
			name := kind + "-" + n.name
			args := append(command[1:len(command):len(command)], j.dir, j.witness.dir, name, fmt.Sprint(rounds))
			j.names = append(j.names, name)
			j.workers = append(j.workers, n.host.Start(command[0], args...))
		}
	}
	j.witness.stop(t)
	j.wait(t)
	require.Empty(t, j.witness.verdict(t))
	require.Equal(t, rounds*len(j.workers), j.witness.rounds(t, ""))
	for _, n := range c.nodes {
		assert.Empty(t, j.errors(n.host), "errors on %s", n.name)
		require.Empty(t, n.host.MustRun(t, "ls", "-A", j.dir), "left over, seen on %s", n.name)
	}
	c.requireSameState(t)
}
