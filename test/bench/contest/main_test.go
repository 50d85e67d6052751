package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/stats"
)

func TestContest(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, measureTo(t.Context(), []string{"--duration", "1ms", "--only", "stat,cycle", dir, dir}, &out))
	var report stats.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	require.Len(t, report.Results, 4)
}
