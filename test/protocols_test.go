package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsOfTheSpecifications runs them as they are printed, mixed with the commands, on a local disk and on a mount.
func TestScriptsOfTheSpecifications(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1)
	script := SourcePath(t, "test/protocols/run.sh")
	for name, dir := range map[string]string{"disk": t.TempDir(), "mount": c.Path("protocols")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := c.Nodes[0].Host.Run("unshare", "--mount", "bash", script, c.Program, dir)
			require.NoError(t, err, said)
			require.Equal(t, "done\n", said)
		})
	}
}
