package operation

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestAlertsFire has Prometheus's own tool read the alert rules, and judge by them what servers and mounts could say: that all is well,
// or that something is not. What a server really serves is compared with the rules' names elsewhere.
func TestAlertsFire(t *testing.T) {
	dir := t.TempDir()
	rules, err := exec.Command(testcluster.Program(t), "docs", "alerts").Output()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lockfs.yml"), rules, 0o600))
	situations, err := os.ReadFile("situations.yml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "situations.yml"), situations, 0o600))
	for _, args := range [][]string{{"check", "rules", "lockfs.yml"}, {"test", "rules", "situations.yml"}} {
		command := exec.Command("promtool", args...)
		command.Dir = dir
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
}
