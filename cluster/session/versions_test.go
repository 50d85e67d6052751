package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/session"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/version"
)

// TestAProgramThatDoesNotFitIsToldBeforeItTakesAnythingOver has a client of later versions.
func TestAProgramThatDoesNotFitIsToldBeforeItTakesAnythingOver(t *testing.T) {
	servers := startServers(t, 1)
	_, err := session.Dial(t.Context(), []string{servers[0].address}, session.Config{
		Host: "h", OpTimeout: testWait, Versions: version.Range{Oldest: 3, Newest: 4}, Logger: quietLogger(),
	})
	require.ErrorIs(t, err, codec.ErrOlder)
	require.ErrorContains(t, err, "this program knows 3 to 4")
	require.Empty(t, servers[0].sessions(t))
}

func status(t testing.TB, s server) *clusterpb.StatusReply {
	t.Helper()
	reply, err := s.Status(t.Context(), &clusterpb.StatusRequest{})
	require.NoError(t, err)
	return reply
}
