package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"servers", "server"}: 1, {"timeout", "tiemout"}: 2, {"kitten", "sitting"}: 3, {"data", "json"}: 4,
	} {
		require.Equal(t, want, distance(pair[0], pair[1]), pair)
		require.Equal(t, want, distance(pair[1], pair[0]), pair)
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-d]{0,6}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		require.Zero(t, distance(a, a))
		require.LessOrEqual(t, distance(a, c), distance(a, b)+distance(b, c))
	})
}
