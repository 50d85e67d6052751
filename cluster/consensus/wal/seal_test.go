package wal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestLogGoesOnAfterASealThatWasNotNoted kills the process between the batch that fills a segment and the note of it.
func TestLogGoesOnAfterASealThatWasNotNoted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log := mustOpen(t, dir, false)
	path := filepath.Join(dir, metaFile)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	first, last := tailOf(t, dir), uint64(0)
	for isFull := false; !isFull; {
		last++
		require.NoError(t, log.StoreLogs([]*raft.Log{entry(last)}))
		content, err := os.ReadFile(first)
		require.NoError(t, err)
		isFull = readBatches(content).indexStart != 0
	}
	crash(t, log)
	if next := tailOf(t, dir); next != first {
		require.NoError(t, os.Remove(next))
	}
	require.NoError(t, os.WriteFile(path, before, 0o600))
	for range 2 {
		log = mustOpen(t, dir, true)
		requireEntries(t, log, 1, last)
		last++
		require.NoError(t, log.StoreLogs([]*raft.Log{entry(last)}))
		requireEntries(t, log, 1, last)
		crash(t, log)
	}
}
