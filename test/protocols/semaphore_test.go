package protocols

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestSemaphoresOfAllKinds has programs in four languages contend for one lock, on three hosts each.
func TestSemaphoresOfAllKinds(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	compiled := filepath.Join(c.Net.Dir(), "semaphore")
	output, err := exec.Command("gcc", "-Wall", "-Werror", "-o", compiled, testcluster.ClientPath(t, "semaphore.c")).CombinedOutput()
	require.NoError(t, err, "%s", output)
	compete(t, c, map[string][]string{
		"bash":    {"bash", testcluster.ClientPath(t, "semaphore.sh")},
		"python":  {"python3", "-B", testcluster.ClientPath(t, "semaphore.py")},
		"c":       {compiled},
		"command": {"env", "LOCKFS=" + c.Program, "bash", testcluster.ClientPath(t, "semaphore-command.sh")},
	}, 3)
}
