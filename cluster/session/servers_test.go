package session_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
)

// TestServersOfTwoClustersAreRefused by a mount that is given both, in whatever order, and by one that was with one of them: nothing is
// opened anywhere.
func TestServersOfTwoClustersAreRefused(t *testing.T) {
	one, other := startServers(t, 2), startServers(t, 1)
	file := filepath.Join(t.TempDir(), "mount.session")
	dial := func(servers ...server) (*session.Client, error) {
		var addresses []string
		for _, s := range servers {
			addresses = append(addresses, s.address)
		}
		return session.Dial(t.Context(), addresses, session.Config{Host: "m", OpTimeout: testWait, SessionFile: file, Logger: quietLogger()})
	}
	refused := func() {
		t.Helper()
		for _, given := range [][]server{{one[0], one[1], other[0]}, {other[0], one[0]}} {
			_, err := dial(given...)
			several := new(rpc.SeveralClustersError)
			require.ErrorAs(t, err, &several)
			require.Equal(t, []string{other[0].address}, several.Servers[status(t, other[0]).GetCluster()])
			require.Contains(t, several.Servers[status(t, one[0]).GetCluster()], one[0].address)
		}
	}
	refused()
	client, err := dial(one...)
	require.NoError(t, err)
	require.NoError(t, client.Close(t.Context()))
	refused()
	require.Empty(t, one[0].sessions(t))
	require.Empty(t, other[0].sessions(t))
}
