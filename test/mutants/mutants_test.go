package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// TestPatchesFit has each patch find its places in the sources. Lint compiles what comes of it.
func TestPatchesFit(t *testing.T) {
	for _, sets := range [][]string{{Faults}, {Hooks}, {Next}, {Next, Faults, Hooks}} {
		_, err := Overlay(root, t.TempDir(), sets...)
		require.NoError(t, err, sets)
	}
}

// TestEachFaultIsSwitchedByItsName keeps a patch from having the name of another.
func TestEachFaultIsSwitchedByItsName(t *testing.T) {
	faults, err := Read(root, Faults)
	require.NoError(t, err)
	for _, p := range faults {
		for _, c := range p.changes {
			require.Contains(t, c.now, `"`+p.Name+`"`, p.Name)
			require.Equal(t, strings.Count(c.now, "mutant."), strings.Count(c.now, `"`+p.Name+`"`)+strings.Count(c.now, "mutant.Without(")+strings.Count(c.now, "mutant.Pause("), p.Name)
		}
	}
}

// inPackage is a repository with one package, of one file.
func inPackage(t *testing.T, text string) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "p"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p/a.go"), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p/a_test.go"), []byte(text), 0o644))
	return dir
}

func writePatch(t *testing.T, dir, text string) {
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "test/mutants/faults"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test/mutants/faults/x.patch"), []byte(text), 0o644))
}

func TestOverlay(t *testing.T) {
	dir, out := inPackage(t, "// Package p is one.\npackage p\n\nfunc a() int {\n\treturn 1\n}\n"), t.TempDir()
	writePatch(t, dir, "wrong\n\n--- p\n func a() int {\n-\treturn 1\n+\tif mutant.On(\"x\") {\n+\t\treturn 2\n+\t}\n+\treturn 1\n")
	flag, err := Overlay(dir, out, Faults)
	require.NoError(t, err)
	require.Equal(t, "-overlay="+filepath.Join(out, "overlay.json"), flag)
	made, err := os.ReadFile(filepath.Join(out, "p/a.go"))
	require.NoError(t, err)
	require.Equal(t, `// Package p is one.
package p; import "lockfs/test/mutants/mutant"

func a() int {
	if mutant.On("x") {
		return 2
	}
	return 1
}
`, string(made))
	list, err := os.ReadFile(filepath.Join(out, "overlay.json"))
	require.NoError(t, err)
	require.Contains(t, string(list), `"`+filepath.Join(dir, "p/a.go")+`": "`+filepath.Join(out, "p/a.go")+`"`)
}

func TestAPatchThatDoesNotFitIsAnError(t *testing.T) {
	for _, c := range []struct{ source, why string }{
		{"package p\n\nfunc b() {}\n", "p has 0 places with these lines"},
		{"package p\n\n/*\nvar a = 1\n*/\nvar a = 1\n", "p has 2 places with these lines"},
		{"package p\n\nfunc f() { var a = 1\n}\n", "p has 0 places"},
	} {
		dir := inPackage(t, c.source)
		writePatch(t, dir, "wrong\n\n--- p\n-var a = 1\n+var a = 2\n")
		_, err := Overlay(dir, t.TempDir(), Faults)
		require.ErrorContains(t, err, "patch x, change 1: "+c.why)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ patch, why string }{
		{"wrong\n", "it says not what it changes"},
		{"\n--- p\n-a\n+b\n", "it says not what it changes"},
		{"wrong\n-a\n", "line 2 is of no change"},
		{"wrong\n--- p\na\n", `line 3 begins with neither " ", "-" nor "+"`},
		{"wrong\n--- p\n+a\n", "a change of p says not where"},
		{"wrong\n--- p\n a\n", "a change of p says not where, or changes nothing"},
	} {
		_, err := parse(c.patch)
		require.ErrorContains(t, err, c.why, "%q", c.patch)
	}
}
