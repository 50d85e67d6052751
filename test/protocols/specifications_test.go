package protocols

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestScriptsOfTheSpecifications runs them as they are printed, mixed with the commands, on a local disk and on a mount.
func TestScriptsOfTheSpecifications(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	script := testcluster.SourcePath(t, "test/protocols/scripts/run.sh")
	for name, dir := range map[string]string{"disk": t.TempDir(), "mount": c.Path("protocols")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := c.Nodes[0].Host.Run("unshare", "--mount", "bash", script, c.Program, dir)
			require.NoError(t, err, said)
			require.Equal(t, "done\n", said)
		})
	}
}
