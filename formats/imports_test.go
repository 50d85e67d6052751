package formats_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Other programs import these packages, so they bring nothing with them: the standard library and one
// another, and a format knows no other format.
func TestFormatsImportOnlyTheStandardLibraryAndOneAnother(t *testing.T) {
	shared := []string{
		"lockfs/formats/lockfact", "lockfs/formats/internal/lockfile", "lockfs/formats/internal/stamp",
		"lockfs/formats/internal/strictjson", "lockfs/formats/pause",
	}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if first, _, _ := strings.Cut(imported, "/"); first != "lockfs" {
				require.NotContains(t, first, ".", "%s imports %s", path, imported)
			} else if filepath.Dir(path) == "." {
				require.Contains(t, imported, "lockfs/formats/", path)
			} else {
				require.Contains(t, shared, imported, path)
			}
		}
		return nil
	}))
}
