package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/consensus"
)

func TestANodeWhoseIdentityIsDamagedCannotBeStartedAnew(t *testing.T) {
	node := startSecureNodes(t, 1)[0]
	require.NoError(t, node.CanStart())
	files, err := os.ReadDir(filepath.Join(node.cfg.DataDir, consensus.CredentialsDir))
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.WriteFile(filepath.Join(node.cfg.DataDir, consensus.CredentialsDir, file.Name()), []byte("damaged"), 0o600))
	}
	require.Error(t, node.CanStart())
}

// TestANodeIsOpenedAgainInItsProcess with the same metrics.
func TestANodeIsOpenedAgainInItsProcess(t *testing.T) {
	cfg := testConfig(t, "n0")
	cfg.Metrics = NewMetrics()
	for range 2 {
		node, err := Open(cfg)
		require.NoError(t, err)
		require.NoError(t, node.WaitReady(t.Context()))
		_, err = cfg.Metrics.Registry.Gather()
		require.NoError(t, err)
		require.NoError(t, node.Close())
	}
}
