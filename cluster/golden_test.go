package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/backup"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
	"lockfs/raftstore/version/goldendata"
)

// goldenConfig is that of the only server of a cluster, whose address for others stays the same.
func goldenConfig(t testing.TB) Config {
	cfg := testConfig(t, "a")
	cfg.Advertise = "server.example:7420"
	return cfg
}

// segmentSize is that of the files of the log. They are kept without what is empty at their end.
const segmentSize = 4 << 20

func segmentsOf(t testing.TB, dataDir string) []string {
	paths, err := filepath.Glob(filepath.Join(dataDir, "log", "*.wal"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

// TestGoldenDataIsOpened has the data directory of a server of each version, with a snapshot, a log that
// goes on from it, and votes; and a backup. It goes on from both.
func TestGoldenDataIsOpened(t *testing.T) {
	goldendata.Each(t, func(dir string) { writeGolden(t, dir) }, func(t *testing.T, of uint32, dir string) {
		cfg := goldenConfig(t)
		require.NoError(t, os.CopyFS(cfg.DataDir, os.DirFS(filepath.Join(dir, "data"))))
		for _, path := range segmentsOf(t, cfg.DataDir) {
			require.NoError(t, os.Truncate(path, segmentSize))
		}
		node := startNode(t, cfg)
		client := openTestClient(t, node, "")
		for i := range 20 {
			require.Equal(t, storepb.Code_EXISTS, create(t, client, fmt.Sprint(i)))
		}
		require.Equal(t, storepb.Code_OK, create(t, client, "later"))

		data, err := os.ReadFile(filepath.Join(dir, "backup"))
		require.NoError(t, err)
		_, state, err := backup.Read(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, of, state.Version())
		found := state.Query(&storepb.Query{Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte("19")}}})
		require.Equal(t, storepb.Code_OK, found.GetCode())
		requireVersion(t, version.Newest, node) // alone, it is raised at once
	})
}

func writeGolden(t *testing.T, dir string) {
	cfg := goldenConfig(t)
	node := startNode(t, cfg)
	client, err := node.OpenClient(t.Context(), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	for i := range 20 {
		if i == 10 {
			takeSnapshot(t, node)
		}
		require.Equal(t, storepb.Code_OK, create(t, client, fmt.Sprint(i)))
	}
	var out bytes.Buffer
	require.NoError(t, adminOf(t, node).Backup(t.Context(), testWait, &out, nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup"), out.Bytes(), 0o644))
	require.NoError(t, client.Close(t.Context()))
	require.NoError(t, node.Close())
	require.NoError(t, os.CopyFS(filepath.Join(dir, "data"), os.DirFS(cfg.DataDir)))
	for _, path := range segmentsOf(t, filepath.Join(dir, "data")) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Len(t, data, segmentSize)
		require.NoError(t, os.WriteFile(path, bytes.TrimRight(data, "\x00"), 0o644))
	}
}
