package lockjson

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPathsInNaturalOrder(t *testing.T) {
	want := []string{"", "0", "00", "01", "1", "2", "10", "a", "a/b", "a/c2", "a/c10", "a-1", "a1", "a1b2", "a1b10", "a2", "b", "job-2", "job-10", "job-10/x", "job-99999999999999999999", "job-100000000000000000000"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, ComparePaths)
	require.Equal(t, want, got)
}

// TestComparePathsIsAnOrder for any three texts: only equal ones compare as equal.
func TestComparePathsIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-2a/\-]{0,6}`)
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		require.Equal(t, a == b, ComparePaths(a, b) == 0)
		require.Equal(t, ComparePaths(a, b), -ComparePaths(b, a))
		if ComparePaths(a, b) < 0 && ComparePaths(b, c) < 0 {
			require.Negative(t, ComparePaths(a, c))
		}
	})
}
