package faults

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// damages are ways in which a file goes bad. Files end with space that is free, so what is lost has to be most of
// what is there, or nothing may be lost at all.
var damages = []struct {
	name string
	do   func(content []byte) []byte
}{
	{"empty", func([]byte) []byte { return nil }},
	{"cut short", func(content []byte) []byte { return content[:len(content)/8] }},
	{"overwritten", func(content []byte) []byte { return slices.Repeat([]byte("garbage "), len(content)/8+1) }},
	{"zeroed at the end", func(content []byte) []byte {
		damaged := slices.Clone(content)
		clear(damaged[len(bytes.TrimRight(content, "\x00"))/8:])
		return damaged
	}},
}

// TestDamagedDataIsRefused damages each file of a data directory in each way. The
// program does not start on it, and says which file it is.
func TestDamagedDataIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1, "--snapshot-entries", "200")
	n := c.Nodes[0]
	hosts.Eventually(t, "a snapshot", func() (string, bool) {
		n.Host.MustRun(t, "sh", "-c", "cd "+c.Mount+" && for i in 1 2 3 4 5 6 7 8 9; do mkdir -p x/y/z && rm -r x; done")
		files := dataFiles(t, n.Data)
		return strings.Join(files, " "), slices.ContainsFunc(files, func(name string) bool { return strings.HasSuffix(name, "/state.bin") })
	})
	n.Stop(t)
	sound := n.Data + ".sound"
	require.NoError(t, os.Rename(n.Data, sound))
	files := dataFiles(t, sound)
	require.Contains(t, files, "votes.db")
	require.Contains(t, files, "log/segments")
	require.Contains(t, files, "node.json")

	for _, name := range files {
		for _, damage := range damages {
			t.Run(name+" "+damage.name, func(t *testing.T) {
				require.NoError(t, os.RemoveAll(n.Data))
				require.NoError(t, os.CopyFS(n.Data, os.DirFS(sound)))
				path := filepath.Join(n.Data, name)
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, damage.do(content), 0o600))
				n.Launch()
				require.Error(t, n.Server.Wait(), "it runs")
				log := n.Server.Log()
				require.Contains(t, log, path, "it says which file")
				require.NotContains(t, log, "goroutine ", "it does not crash")
				require.Zero(t, testcluster.CountMounts(t, n.Host, c.Mount))
			})
		}
	}
	require.NoError(t, os.RemoveAll(n.Data))
	require.NoError(t, os.Rename(sound, n.Data))
	n.Start(t)
}

// ifThere is no error if a server that runs has given a file another name meanwhile.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// dataFiles names the files of a data directory that hold something that a node needs. The audit file only
// reports: what a crash tore off it is written again. The reserve is there to be given up.
func dataFiles(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ifThere(err)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || strings.HasPrefix(entry.Name(), "audit") || entry.Name() == "reserve" {
			return ifThere(err)
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	})
	require.NoError(t, err)
	return names
}
