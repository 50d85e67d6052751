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
	output, err := exec.Command("gcc", "-Wall", "-Werror", "-o", compiled, "clients/semaphore.c").CombinedOutput()
	require.NoError(t, err, "%s", output)
	c.contend(t, map[string][]string{
		"bash":    {"bash", clientPath(t, "semaphore.sh")},
		"python":  {"python3", "-B", clientPath(t, "semaphore.py")},
		"c":       {compiled},
		"command": {"env", "LOCKFS=" + c.program, "bash", clientPath(t, "semaphore-command.sh")},
	}, 3)
}
