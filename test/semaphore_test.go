package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSemaphoresOfAllKinds has programs in four languages contend for one lock, on three hosts each.
func TestSemaphoresOfAllKinds(t *testing.T) {
	c := startCluster(t, 3)
	compiled := filepath.Join(c.net.Dir(), "semaphore")
	output, err := exec.Command("gcc", "-Wall", "-Werror", "-o", compiled, "clients/semaphore.c").CombinedOutput()
	require.NoError(t, err, "%s", output)
	clients, err := filepath.Abs("clients")
	require.NoError(t, err)
	kinds := map[string][]string{
		"bash":    {"bash", filepath.Join(clients, "semaphore.sh")},
		"python":  {"python3", filepath.Join(clients, "semaphore.py")},
		"c":       {compiled},
		"command": {"env", "LOCKFS=" + c.program, "bash", filepath.Join(clients, "semaphore-command.sh")},
	}

	const rounds = 3
	j := &job{
		client: client{name: "semaphore"}, dir: c.path("semaphore"),
		witness: newWitness(t, filepath.Join(c.net.Dir(), "witness")),
	}
	c.nodes[0].host.MustRun(t, "mkdir", j.dir)
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
