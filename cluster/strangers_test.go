package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// These tests have strangers, and hosts that are in, do what they should not.

// requestOf is a request for a certificate of a new key.
func requestOf(t testing.TB, role identity.Role, host string) []byte {
	t.Helper()
	key, err := identity.NewKey()
	require.NoError(t, err)
	request, err := key.Request(identity.Name{Role: role, Host: host})
	require.NoError(t, err)
	return request
}

// asStranger calls from an address.
func asStranger(t testing.TB, address string) context.Context {
	return rpc.WithCaller(t.Context(), rpc.Caller{Role: rpc.RoleJoiner, Address: netip.MustParseAddr(address)})
}

// anybodysSecurity takes whatever a server shows, and shows nothing.
func anybodysSecurity(protocol string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, InsecureSkipVerify: true}
}

// TestAStrangerHearsNothingOfHosts asks for names without a token.
func TestAStrangerHearsNothingOfHosts(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	join(t, node, "web1")
	join(t, node, "web2")
	change(t, node, revokeHost("web2"))
	said := make(map[string]bool)
	for _, name := range []string{"n0", "web1", "web2", "web3"} {
		reply, err := node.Enroll(asStranger(t, "192.0.2.1"), &clusterpb.EnrollRequest{Host: name, Request: requestOf(t, identity.Client, name)})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_NOT_PERMITTED, reply.GetResult().GetCode())
		said[strings.ReplaceAll(reply.GetResult().GetMessage(), name, "NAME")] = true
	}
	require.Len(t, said, 1, "%v", said)
}

func TestFollowersTellOnlyWhomTheyKnowWhoLeads(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	leader := leaderOf(t, nodes)
	follower := nodes[0]
	if follower == leader {
		follower = nodes[1]
	}
	token := newToken(t, leader, new(storepb.JoinToken))
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, follower.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool { return len(ns.Tokens()) == 2 }))
	peers := rpc.NewJoinPeers(&rpc.Security{Client: anybodysSecurity})
	defer peers.Close()
	known := withToken(&clusterpb.EnrollRequest{TokenId: token.ID[:], Host: "web1", Request: requestOf(t, identity.Client, "web1")}, token.Secret)
	wrong := withToken(&clusterpb.EnrollRequest{TokenId: token.ID[:], Host: "web1", Request: known.GetRequest()}, identity.Secret{})
	without := &clusterpb.EnrollRequest{Host: "web1", Request: known.GetRequest()}
	for _, request := range []*clusterpb.EnrollRequest{new(clusterpb.EnrollRequest), without, wrong} {
		reply, err := peers.Node(follower.cfg.Advertise).Enroll(ctx, request)
		require.NoError(t, err)
		require.Equal(t, clusterpb.Outcome_NOT_LEADER, reply.GetOutcome())
		require.Empty(t, reply.GetLeaderAddress())
	}
	reply, err := peers.Node(follower.cfg.Advertise).Enroll(ctx, known)
	require.NoError(t, err)
	require.Equal(t, leader.cfg.Advertise, reply.GetLeaderAddress())
}

// TestEventsAreNotFloodedByStrangers has one come from many addresses.
func TestEventsAreNotFloodedByStrangers(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	last := func() (number uint64) {
		node.fsm.View(func(ns *namespace.Namespace) { number = ns.LastEvent() })
		return number
	}
	before := last()
	request := requestOf(t, identity.Client, "web1")
	for i := range 200 {
		reply, err := node.Enroll(asStranger(t, fmt.Sprintf("192.0.2.%d", i)), &clusterpb.EnrollRequest{Host: "web1", Request: request})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_NOT_PERMITTED, reply.GetResult().GetCode())
	}
	require.NotNil(t, lastEvent(t, node, "join_refused"))
	require.LessOrEqual(t, last()-before, uint64(2*maxReports))
}

// TestARemovalThatWasCutOffGoesOn has the leader stop after it has taken a member out, and before it has
// revoked its certificate.
func TestARemovalThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	leader := leaderOf(t, nodes)
	member := nodes[0]
	if member == leader {
		member = nodes[1]
	}
	require.NoError(t, leader.remover.removeFromConfig(t.Context(), member.dir.ID, "it was removed"))
	remove := func() *storepb.Result {
		return ask(t, leader, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: member.dir.Name}).GetResult()
	}
	require.Equal(t, storepb.Code_OK, remove().GetCode())
	leader.fsm.View(func(ns *namespace.Namespace) { require.NotZero(t, ns.Admission(member.dir.Name).GetRevoked()) })
	require.Equal(t, storepb.Code_OK, remove().GetCode(), "as if the answer had been lost")
}

func TestAnAdminChangeCarriesItsCallersHost(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	remote := callerAs(t, node, node.security.credentials)
	for _, said := range []*storepb.Caller{nil, {Host: "somebody else"}} {
		request := setRule("x")
		request.Caller = said
		_, err := remote.Change(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, "n0", lastEvent(t, node, "rule_set").GetBy().GetHost())
	}
}

// TestTheBootstrapCAIsRecordedByTheLeader has the first server not be done with it when it begins to lead.
func TestTheBootstrapCAIsRecordedByTheLeader(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	authority, err := node.certIssuer.signer.current()
	require.NoError(t, err)
	node.security.bootstrapCA.Store(&bootstrapCA{filepath.Join(t.TempDir(), "founding"), authority})
	require.Eventually(t, func() bool { return node.security.bootstrapCA.Load() == nil }, testWait, time.Millisecond)
}
