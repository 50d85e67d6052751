package cluster

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// raftAs speaks raft to a node, as one of its cluster with credentials.
func raftAs(t testing.TB, node *Node, credentials *identity.Credentials) *raft.NetworkTransport {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	security := &rpc.Security{Client: func(protocol string) *tls.Config {
		return credentials.ClientConfig(credentials.Verifier(nil), protocol)
	}}
	over := raft.NewNetworkTransportWithLogger(&raftStream{
		Listener: listener, advertised: advertised(listener.Addr().String()), security: security, cluster: node.dir.ClusterID, logger: node.logger,
	}, 1, testWait, nil)
	t.Cleanup(func() {
		over.CloseStreams()
		_ = over.Close()
	})
	return over
}

// requestVote asks as a server that is no member.
func requestVote(over *raft.NetworkTransport, of *Node) error {
	return over.RequestVote("", raft.ServerAddress(of.cfg.Advertise), &raft.RequestVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("somebody"), Addr: []byte("nowhere:1")}, Term: 1,
	}, new(raft.RequestVoteResponse))
}

// TestWhoSpeaksRaft has a server that is not known yet, and one that was replaced by another of its name.
func TestWhoSpeaksRaft(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	enrolled := func(want *storepb.JoinToken) *identity.Credentials {
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		defer cancel()
		dir := filepath.Join(t.TempDir(), "identity")
		joined, err := certrenew.Join(ctx, newToken(t, node, want), "n9", dir, func(identity.SealKey) error { return nil })
		require.NoError(t, err)
		return joined.Credentials
	}
	authority, err := node.certIssuer.signer.current()
	require.NoError(t, err)
	later := raftAs(t, node, issued(t, authority, "later", node.clusterTime()))
	require.NoError(t, requestVote(later, node), "its state may be behind")

	replaced := enrolled(&storepb.JoinToken{Role: storepb.Role_SERVER})
	gone := raftAs(t, node, replaced)
	require.NoError(t, requestVote(gone, node))
	replacing := raftAs(t, node, enrolled(&storepb.JoinToken{Role: storepb.Role_SERVER, Host: "n9"}))
	require.NoError(t, requestVote(replacing, node))
	require.Eventually(t, func() bool { return requestVote(gone, node) != nil }, testWait, time.Millisecond, "its connection is ended")
	require.Error(t, requestVote(gone, node), "and there is no other one")
	require.NoError(t, requestVote(replacing, node))
	node.hangUpRevoked()
	require.NoError(t, requestVote(later, node), "on the connection that it has")

	change(t, node, revokeHost("n9"))
	require.Eventually(t, func() bool { return requestVote(replacing, node) != nil }, testWait, time.Millisecond, "its connection is ended")
	require.Error(t, requestVote(replacing, node))
	again := raftAs(t, node, issued(t, authority, "n9", node.clusterTime()))
	require.NoError(t, requestVote(again, node), "with another key it may have come back, and lead")
}

// TestWhoSignsNowMayBeNewsToAState tells whom a node trusts whose certificate is of an authority that its
// state does not have.
func TestWhoSignsNowMayBeNewsToAState(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	next, err := identity.NewAuthority(time.Now())
	require.NoError(t, err)
	trusts := func(given time.Time) bool {
		j := newCertVerifier(issued(t, next, "n9", given), node.clusterTime)
		j.fsm.Store(node.fsm)
		return slices.ContainsFunc(j.Authorities(), next.Certificate().Equal)
	}
	require.True(t, trusts(node.clusterTime().Add(time.Hour)), "its state is behind")
	require.False(t, trusts(node.clusterTime().Add(-time.Hour)), "its state has dropped it")
}

// issued are credentials that no state knows of.
func issued(t testing.TB, authority *identity.Authority, host string, at time.Time) *identity.Credentials {
	t.Helper()
	key, err := identity.NewKey()
	require.NoError(t, err)
	der, err := key.Request(identity.Name{Role: identity.Server, Host: host})
	require.NoError(t, err)
	request, err := identity.ParseRequest(der)
	require.NoError(t, err)
	leaf, err := authority.Issue(request, at, time.Hour)
	require.NoError(t, err)
	credentials, err := identity.NewCredentials(key, identity.IssuedCert{Leaf: leaf, Authorities: [][]byte{authority.Certificate().Raw}})
	require.NoError(t, err)
	return credentials
}
