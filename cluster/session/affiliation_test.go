package session

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
)

// TestAffiliation has a mount of cluster a be answered by others. Only one that goes on for a is followed.
func TestAffiliation(t *testing.T) {
	const done, other = clusterpb.Outcome_DONE, clusterpb.Outcome_OTHER_CLUSTER
	var moves []string
	a := &affiliation{
		moved:  func(from, to string) { moves = append(moves, from+">"+to) },
		logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	require.True(t, a.is("a"), "it has met none yet")
	require.True(t, a.is(""))
	require.NoError(t, a.take("", done, ""), "who is of none yet")
	require.NoError(t, a.take("", done, "a"))
	require.Equal(t, []string{">a"}, moves)
	require.True(t, a.is("a"))
	require.True(t, a.is(""))
	require.False(t, a.is("b"))

	require.NoError(t, a.take("a", done, "a"))
	require.NoError(t, a.take("", done, "a"), "asked before it was known")
	require.Error(t, a.take("", done, "b"), "asked before a was met: it does not say that it goes on for that")
	require.Error(t, a.take("a", other, "b"))
	require.Error(t, a.take("a", other, "a"), "it says itself that it is not the one asked for")
	require.Error(t, a.take("a", other, ""))
	require.Equal(t, "a", a.get())
	require.True(t, a.metOthers())
	require.Len(t, moves, 1)

	require.NoError(t, a.take("a", done, "c"), "which goes on for a")
	require.Equal(t, "c", a.get())
	require.Equal(t, []string{">a", "a>c"}, moves)
	require.Error(t, a.take("a", done, "a"), "which is over")
	for i := range 2 * mostOthers {
		require.Error(t, a.take("c", other, fmt.Sprint(i)))
	}
	require.Len(t, a.others, mostOthers)
}
