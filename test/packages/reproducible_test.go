package packages

import (
	"crypto/sha256"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestReleasesAreEqual makes two, byte by byte the same, from other directories for what is temporary. In a long run the programs are
// built for it, for both architectures, by compilers that remember nothing of each other.
func TestReleasesAreEqual(t *testing.T) {
	if !testcluster.Long() {
		compare(t, released(t, newer), released(t, newer))
		return
	}
	var made [2]string
	for i := range made {
		t.Setenv("TMPDIR", t.TempDir())
		t.Setenv("GOCACHE", t.TempDir())
		made[i] = release(t, "--version", newer)
	}
	compare(t, made[0], made[1])
	for _, arch := range []string{"amd64", "arm64"} {
		program, err := elf.Open(filepath.Join(made[0], "lockfs_"+newer+"_linux_"+arch))
		require.NoError(t, err)
		libraries, err := program.ImportedLibraries()
		require.NoError(t, err)
		require.Empty(t, libraries, "it is static")
		for _, segment := range program.Progs {
			require.NotEqual(t, elf.PT_INTERP, segment.Type, "it is static")
		}
		require.NoError(t, program.Close())
	}
}

func compare(t *testing.T, first, second string) {
	sums := func(dir string) map[string][sha256.Size]byte {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		sums := map[string][sha256.Size]byte{}
		for _, entry := range entries {
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
			sums[entry.Name()] = sha256.Sum256(content)
		}
		return sums
	}
	require.NotEmpty(t, sums(first))
	require.Equal(t, sums(first), sums(second))
}
