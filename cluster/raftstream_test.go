package cluster

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/rpc"
)

// TestWhoSpeaksRaftSaysSoSoon has a connection be opened, and nothing come of it.
func TestWhoSpeaksRaftSaysSoSoon(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	conn, err := node.connections().Dial(t.Context(), node.cfg.Address, rpc.ProtocolRaft)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(testWait)))
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
}
