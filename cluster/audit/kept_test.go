package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/version/goldendata"
)

// TestKeptTrailsGoOn has an audit trail that each version has written, and goes on with it.
func TestKeptTrailsGoOn(t *testing.T) {
	write := func(dir string) {
		log := openLog(t, Config{Path: filepath.Join(dir, "audit.jsonl"), MaxSize: 1 << 20, Keep: 3})
		require.NoError(t, log.Append(events(1, 2, 3)))
		require.NoError(t, log.Close())
	}
	goldendata.Each(t, write, func(t *testing.T, _ uint32, dir string) {
		data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
		require.NoError(t, err)
		cfg := testConfig(t)
		require.NoError(t, os.WriteFile(cfg.Path, data, 0o600))
		log := openLog(t, cfg)
		require.EqualValues(t, 3, log.Last())
		require.NoError(t, log.Append(events(2, 3, 4)))
		require.NoError(t, log.Close())
		require.Equal(t, string(data)+text(events(4)), content(t, cfg.Path))
	})
}
