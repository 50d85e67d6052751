package protocols

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// linkTo is another name of the program.
func linkTo(t testing.TB, c *testcluster.Cluster, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(c.Program, path))
	return path
}

// TestSwarmExpired has workers on three hosts override locks that have expired, with the command, under the name of
// the script, and with a script that removes and creates. Exactly one gets each.
func TestSwarmExpired(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	const tasks = 6
	c.Nodes[0].Host.MustRun(t, "bash", "-ec", `mkdir -p "$1/locks"
		for task in $(seq "$2"); do
			printf '{"task_id":"%s","worker":"gone","acquired_at":"2025-02-02T10:00:00Z","expires_at":"2025-02-02T11:00:00Z"}' \
				"$task" > "$1/locks/$task.lock"
		done`, "bash", c.Path("swarm"), fmt.Sprint(tasks))
	const takeAll = `export SWARM_STATE_DIR=$1 worker=$2
		for task in $(seq "$3"); do "${@:4}" acquire "$task" "$worker" && echo "$worker took $task"; done; exit 0`
	var workers []*hosts.Process
	for kind, command := range map[string][]string{
		"command": {c.Program, "swarm"},
		"link":    {linkTo(t, c, "swarm_lock.sh")},
		"script":  {"python3", testcluster.ClientPath(t, "swarm.py")},
	} {
		for _, n := range c.Nodes {
			args := append([]string{"-c", takeAll, "bash", c.Path("swarm"), kind + "-" + n.Name, fmt.Sprint(tasks)}, command...)
			workers = append(workers, n.Host.Start("bash", args...))
		}
	}
	took := make(map[string][]string)
	for _, w := range workers {
		require.NoError(t, w.Wait())
		for line := range strings.Lines(w.Stdout()) {
			if worker, task, is := strings.Cut(strings.TrimSpace(line), " took "); is {
				took[task] = append(took[task], worker)
			}
		}
		for line := range strings.Lines(w.Log()) {
			require.Regexp(t, `^((lockfs|swarm_lock.sh): not acquired: |Lock already exists|Lock acquired|.*: Active|  |.* took )`, line, "%s", w)
		}
	}
	require.Len(t, took, tasks)
	for task, workers := range took {
		require.Len(t, workers, 1, "those who took %s", task)
		require.Contains(t, c.Nodes[1].Host.MustRun(t, "cat", c.Path("swarm/locks", task+".lock")), workers[0])
	}
	left := strings.Fields(c.Nodes[2].Host.MustRun(t, "ls", "-A", c.Path("swarm/locks")))
	require.Len(t, left, tasks)
	c.RequireSameState(t)
}

// TestSwarmNineSteps verifies the command as the specification does, on a mount.
func TestSwarmNineSteps(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	script := testcluster.SourcePath(t, "cmd/lockfs/internal/protocol/testdata/swarm_nine_steps.sh")
	said := c.Nodes[0].Host.MustRun(t, "env", "SWARM_STATE_DIR="+c.Path("swarm"), script, linkTo(t, c, "swarm_lock.sh"))
	require.Equal(t, 9, strings.Count(said, "PASS "), said)
}

// TestSwarmTokens: who overrides an expired lock gets a larger token, also under the name of the worker that had it.
func TestSwarmTokens(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	host := c.Nodes[0].Host
	swarm := func(args ...string) (lock struct{ Token uint64 }) {
		t.Helper()
		command := append([]string{"SWARM_STATE_DIR=" + c.Path("swarm"), c.Program, "swarm"}, args...)
		require.NoError(t, json.Unmarshal([]byte(host.MustRun(t, "env", command...)), &lock))
		return lock
	}
	first := swarm("acquire", "t", "w", "1", "--json")
	c.AwaitState(t, host, "swarm/locks/t.lock", "stale")
	second := swarm("acquire", "t", "w", "--json")
	require.Equal(t, second, swarm("check", "t", "--json"))
	require.NotZero(t, first.Token)
	require.Greater(t, second.Token, first.Token)
}
