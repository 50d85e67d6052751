package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// Versions of the releases that tests make, of one program.
const (
	older = "1.0.0"
	newer = "1.0.1"
)

// releaserDir is where it is then; TestMain removes that.
var releaserDir string

// releaser builds the command that makes releases, once.
var releaser = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "releaser")
	if err != nil {
		return "", err
	}
	releaserDir = dir
	program := filepath.Join(dir, "release")
	said, err := exec.Command("go", "build", "-C", "../../cmd/release", "-buildvcs=false", "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", &buildError{string(said), err}
	}
	return program, nil
})

type buildError struct {
	said string
	err  error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.said }

// release makes one, and answers the directory that it is in.
func release(t testing.TB, args ...string) string {
	t.Helper()
	program, err := releaser()
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "release")
	cmd := exec.Command(program, append(args, "--out", out)...)
	cmd.Dir = "../../cmd/release"
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return out
}

// released is a release of the program under test.
func released(t testing.TB, version string) string {
	t.Helper()
	return release(t, "--built", testcluster.Program(t), "--version", version)
}

// the is the one file in a directory whose name matches.
func the(t testing.TB, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

// TestSums: what is released is what was made, and of what is written down.
func TestSums(t *testing.T) {
	t.Parallel()
	dir := released(t, newer)
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	check.Dir = dir
	said, err := check.CombinedOutput()
	require.NoError(t, err, "%s", said)
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "SHA256SUMS" {
			require.Contains(t, string(sums), "  "+strings.TrimPrefix(path, dir+"/")+"\n")
		}
		return err
	}))
	bom, err := os.ReadFile(the(t, dir, "*.cdx.json"))
	require.NoError(t, err)
	require.Contains(t, string(bom), `"purl": "pkg:golang/github.com/hashicorp/raft@v`)
	require.Contains(t, string(bom), `"purl": "pkg:golang/std@1.`)
}
