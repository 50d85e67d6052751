package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsOfTheSpecifications runs them as they are printed, mixed with the commands, on a local disk and on a mount.
func TestScriptsOfTheSpecifications(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	script := SourcePath(t, "test/protocols/run.sh")
	for name, dir := range map[string]string{"disk": t.TempDir(), "mount": c.path("protocols")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := c.nodes[0].host.Run("unshare", "--mount", "bash", script, c.program, dir)
			require.NoError(t, err, said)
			require.Equal(t, "done\n", said)
		})
	}
}
