package consensus

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/crc64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// usedDirectory is that of a voter that has a log, a vote and snapshots, and is not running.
func usedDirectory(t *testing.T) setup {
	t.Helper()
	cfg := newSetup(t)
	cfg.SnapshotEntries = 20
	v := cfg.start(t)
	for i := range 60 {
		v.mustCreate(t, fmt.Sprintf("lock%d", i))
	}
	v.snapshot(t)
	v.mustCreate(t, "last")
	require.NoError(t, v.close())
	return cfg
}

// eachFile names the files of a data directory that hold its state.
func eachFile(t *testing.T, cfg setup) []string {
	t.Helper()
	states, err := filepath.Glob(filepath.Join(cfg.path, snapshotDir, "*", "state.bin"))
	require.NoError(t, err)
	require.NotEmpty(t, states)
	newest := states[len(states)-1]
	segments, err := filepath.Glob(filepath.Join(cfg.path, logDir, "*.wal"))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	return []string{
		filepath.Join(cfg.path, IdentityFile), filepath.Join(cfg.path, votesFile),
		segments[0], filepath.Join(cfg.path, logDir, "segments"), newest, filepath.Join(filepath.Dir(newest), "meta.json"),
	}
}

func TestDamageIsRefused(t *testing.T) {
	cfg := usedDirectory(t)
	damages := map[string]func(t *testing.T, path string){
		"emptied":   func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"removed":   func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"cut":       func(t *testing.T, path string) { truncateTo(t, path, 0.125) },
		"scribbled": scribble,
	}
	for _, path := range eachFile(t, cfg) {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for what, damage := range damages {
			t.Run(filepath.Base(path)+" "+what, func(t *testing.T) {
				damage(t, path)
				v, err := cfg.open(t.Context())
				if v != nil {
					_ = v.close()
				}
				damaged := new(DamagedError)
				require.ErrorAs(t, err, &damaged)
				require.Equal(t, path, damaged.Path)
				require.ErrorContains(t, err, "lockfs member remove", "what to do")
				require.NoError(t, os.WriteFile(path, whole, 0o600))
			})
		}
	}
	cfg.start(t)
}

// requireSound requires that a file is named with which nothing is started, and says neither that it is
// damaged nor that anything is to be moved away.
func requireSound(t *testing.T, cfg setup, path, what string) {
	t.Helper()
	v, err := cfg.open(t.Context())
	if v != nil {
		_ = v.close()
	}
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, what)
	require.NotErrorAs(t, err, new(*DamagedError))
	for _, advice := range []string{"damaged", "remove", "move"} {
		require.NotContains(t, err.Error(), advice)
	}
}

func TestErrorsOfTheDiskAreNotDamage(t *testing.T) {
	cfg := usedDirectory(t)
	for _, path := range eachFile(t, cfg) {
		t.Run(filepath.Base(path), func(t *testing.T) { // a directory in its place cannot be read
			require.NoError(t, os.Rename(path, path+".away"))
			require.NoError(t, os.Mkdir(path, 0o700))
			requireSound(t, cfg, path, "is a directory")
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Rename(path+".away", path))
		})
	}
	cfg.start(t)
}

func TestNewerVersionsAreNotDamage(t *testing.T) {
	cfg := usedDirectory(t)
	files := eachFile(t, cfg)
	identity, state, meta := files[0], files[4], files[5]
	replace := func(path, old, with string) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		changed := bytes.Replace(content, []byte(old), []byte(with), 1)
		require.NotEqual(t, content, changed)
		require.NoError(t, os.WriteFile(path, changed, 0o600))
	}
	replace(identity, `"version": 2`, `"later": {}, "version": 3`)
	requireSound(t, cfg, identity, "update this node")
	replace(identity, `"later": {}, "version": 3`, `"earlier": {}, "version": 1`)
	requireSound(t, cfg, identity, "start that version again")
	replace(identity, `"earlier": {}, "version": 1`, `"version": 2`)
	replace(meta, `"Version":1`, `"Version":2`)
	requireSound(t, cfg, meta, "update this node")
	replace(meta, `"Version":2`, `"Version":1`)

	header := "lockfs-snapshot\n"
	content, err := os.ReadFile(state)
	require.NoError(t, err)
	sum := func(content []byte) string {
		crc := crc64.New(crc64.MakeTable(crc64.ECMA))
		_, _ = crc.Write(content)
		return base64.StdEncoding.EncodeToString(crc.Sum(nil))
	}
	newer := bytes.Clone(content)
	require.EqualValues(t, 8, newer[len(header)+1], "the version is the first field")
	newer[len(header)+2]++
	require.NoError(t, os.WriteFile(state, newer, 0o600))
	replace(meta, sum(content), sum(newer))
	requireSound(t, cfg, state, "update this node")
	require.NoError(t, os.WriteFile(state, content, 0o600))
	replace(meta, sum(newer), sum(content))
	cfg.start(t)
}

func truncateTo(t *testing.T, path string, part float64) {
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(float64(info.Size())*part)))
}

// scribble overwrites most of a file; a log has free pages, where damage does no harm.
func scribble(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := len(data) / 8; i < len(data); i++ {
		data[i] = 0xA5
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
}
