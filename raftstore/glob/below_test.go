package glob

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBelowDecidesWhatFits: below two directories with one answer the same names fit.
func TestBelowDecidesWhatFits(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "*", "**", "?b"})
	name := rapid.SampledFrom([]string{"a", "b", "ab"})
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "pattern"), "/")
		draw := func(of string, least int) string {
			return strings.Join(rapid.SliceOfN(name, least, 3).Draw(t, of), "/")
		}
		one, another, below := draw("one", 0), draw("another", 0), draw("below", 1)
		if Below(pattern, one) != Below(pattern, another) {
			return
		}
		same++
		fits := func(dir string) bool { return Match(pattern, strings.TrimPrefix(dir+"/"+below, "/")) }
		require.Equal(t, fits(one), fits(another), "%q below %q and %q", below, one, another)
	})
	require.NotZero(t, same)
	for _, row := range []struct {
		pattern, one, another string
		same                  bool
	}{
		{"*.lock", "a", "b/c", true},
		{"**/*.lock", "a", "b/c", true},
		{"**/*.lock", "", "b/c", true},
		{"a/**", "b", "c/d", true},
		{"a/**", "a/x", "a/y/z", true},
		{"a/**", "a", "b", false},
		{"a/*/x", "a/b", "a/c", true},
		{"a/*/x", "a/b", "b/c", false},
		{"a/b", "a/b", "c", true},
	} {
		require.Equal(t, row.same, Below(row.pattern, row.one) == Below(row.pattern, row.another), "%+v", row)
	}
}
