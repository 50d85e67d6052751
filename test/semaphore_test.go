package test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSemaphoresOfAllKinds has programs in four languages contend for one lock, on three hosts each.
func TestSemaphoresOfAllKinds(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	compiled := filepath.Join(c.net.Dir(), "semaphore")
	output, err := exec.Command("gcc", "-Wall", "-Werror", "-o", compiled, ClientPath(t, "semaphore.c")).CombinedOutput()
	require.NoError(t, err, "%s", output)
	c.contend(t, map[string][]string{
		"bash":    {"bash", ClientPath(t, "semaphore.sh")},
		"python":  {"python3", "-B", ClientPath(t, "semaphore.py")},
		"c":       {compiled},
		"command": {"env", "LOCKFS=" + c.program, "bash", ClientPath(t, "semaphore-command.sh")},
	}, 3)
}
