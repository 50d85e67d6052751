package session

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
)

// TestClusterBinding has a mount of cluster a be answered by others. Only one that goes on for a is followed.
func TestClusterBinding(t *testing.T) {
	const done, other = clusterpb.Outcome_DONE, clusterpb.Outcome_OTHER_CLUSTER
	var moves []string
	a := &clusterBinding{
		onRebind: func(from, to string) { moves = append(moves, from+">"+to) },
		logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	require.True(t, a.is("a"), "it has met none yet")
	require.True(t, a.is(""))
	require.NoError(t, a.check("", done, ""), "who is of none yet")
	require.NoError(t, a.check("", done, "a"))
	require.Equal(t, []string{">a"}, moves)
	require.True(t, a.is("a"))
	require.True(t, a.is(""))
	require.False(t, a.is("b"))

	require.NoError(t, a.check("a", done, "a"))
	require.NoError(t, a.check("", done, "a"), "asked before it was known")
	require.Error(t, a.check("", done, "b"), "asked before a was met: it does not say that it goes on for that")
	require.Error(t, a.check("a", other, "b"))
	require.Error(t, a.check("a", other, "a"), "it says itself that it is not the one asked for")
	require.Error(t, a.check("a", other, ""))
	require.Equal(t, "a", a.get())
	require.True(t, a.sawForeign())
	require.Len(t, moves, 1)

	require.NoError(t, a.check("a", done, "c"), "which goes on for a")
	require.Equal(t, "c", a.get())
	require.Equal(t, []string{">a", "a>c"}, moves)
	require.Error(t, a.check("a", done, "a"), "which is over")
	for i := range 2 * maxForeign {
		require.Error(t, a.check("c", other, fmt.Sprint(i)))
	}
	require.Len(t, a.foreign, maxForeign)
}
