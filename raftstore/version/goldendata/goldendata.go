// Package goldendata finds the files written by each released version, for tests that read them. They are in
// testdata/versionN of the package that reads them. After a change, the following command writes those of an
// unreleased version again:
//
//	LOCKFS_MAKE_GOLDEN=1 go test -count=1 -run Kept ./raftstore/namespace ./cluster ./cluster/audit ./cluster/session
//
// Files of earlier versions never change.
package goldendata

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/version"
)

// Each runs a test with the directory of each released version. With LOCKFS_MAKE_GOLDEN=1, write first fills
// an empty directory for the last version.
func Each(t *testing.T, write func(dir string), read func(t *testing.T, of uint32, dir string)) {
	dir := func(of uint32) string { return filepath.Join("testdata", fmt.Sprintf("version%d", of)) }
	if os.Getenv("LOCKFS_MAKE_GOLDEN") == "1" {
		require.Equal(t, version.Released, version.Newest, "the program of the next version makes none")
		last := dir(version.Released)
		require.NoError(t, os.RemoveAll(last))
		require.NoError(t, os.MkdirAll(last, 0o755))
		write(last)
	}
	for v := uint32(1); v <= version.Released; v++ {
		t.Run(fmt.Sprint("version", v), func(t *testing.T) { read(t, v, dir(v)) })
	}
}
