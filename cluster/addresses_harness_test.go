package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireAddresses waits until all nodes know all by their addresses, in raft's configuration and in the
// state.
func requireAddresses(t testing.TB, nodes ...*Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, at := range nodes {
			for _, of := range nodes {
				known := at.raft.Server(of.dir.ID)
				if known == nil || string(known.Address) != of.cfg.Address || at.members.get(of.dir.ID).GetAddress() != of.cfg.Address {
					return false
				}
			}
		}
		return true
	}, testWait, 10*time.Millisecond)
}
