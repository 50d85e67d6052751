package cluster

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemoryOfControlGroups: the least one counts, also of a group above.
func TestMemoryOfControlGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for group, limit := range map[string]string{"": "none", "system": "1000\n", "system/lockfs": "max\n", "system/other": "10\n"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, group), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, group, "memory.max"), []byte(limit), 0o644))
	}
	require.EqualValues(t, 1000, groupMemory(dir, "1:name=systemd:/x\n0::/system/lockfs\n"))
	require.EqualValues(t, 10, groupMemory(dir, "0::/system/other\n"))
	require.EqualValues(t, uint64(math.MaxUint64), groupMemory(dir, "0::/../../elsewhere\n"))
	require.Greater(t, Memory(), uint64(1<<20))
}
