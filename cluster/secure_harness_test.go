package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// secureConfig is testConfig with certificates.
func secureConfig(t testing.TB, name string) Config {
	cfg := testConfig(t, name)
	cfg.Insecure, cfg.Bootstrap = false, false
	return cfg
}

// bootstrapSecure runs the first node of a cluster with certificates, and waits until it gives some.
func bootstrapSecure(t testing.TB, change ...func(*Config)) *Node {
	t.Helper()
	cfg := secureConfig(t, "n0")
	cfg.Bootstrap = true
	for _, c := range change {
		c(&cfg)
	}
	node := startNode(t, cfg)
	awaitBootstrapRecorded(t, node)
	return node
}

func awaitBootstrapRecorded(t testing.TB, node *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, node.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool { return ns.Admission(node.dir.Name) != nil }))
	// The node itself hears of it a moment later, and enrolls nobody before.
	require.Eventually(t, func() bool { return node.security.bootstrapCA.Load() == nil }, testWait, time.Millisecond)
}

// startSecureNodes runs a cluster of n nodes with certificates.
func startSecureNodes(t testing.TB, n int, change ...func(*Config)) []*Node {
	t.Helper()
	nodes := []*Node{bootstrapSecure(t, change...)}
	for i := 1; i < n; i++ {
		cfg := secureConfig(t, fmt.Sprintf("n%d", i))
		for _, c := range change {
			c(&cfg)
		}
		enrollNode(t, nodes[0], cfg)
		nodes = append(nodes, startNode(t, cfg))
	}
	return nodes
}

func enrollNode(t testing.TB, by *Node, cfg Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	require.NoError(t, Enroll(ctx, cfg, newToken(t, by, &storepb.JoinToken{Role: storepb.Role_SERVER})))
}

// newToken makes one, of one use and an hour unless it says otherwise.
func newToken(t testing.TB, by *Node, want *storepb.JoinToken) *identity.Token {
	t.Helper()
	role := identity.Client
	if want.GetRole() == storepb.Role_SERVER {
		role = identity.Server
	} else {
		want.Role = storepb.Role_CLIENT
	}
	fingerprint := identity.Fingerprint{}
	now := by.clusterTime()
	by.fsm.View(func(ns *namespace.Namespace) { fingerprint = identity.Fingerprint([]byte(signerOf(ns))) })
	token := identity.NewToken(role, by.members.addresses(), fingerprint, now)
	hash := token.Secret.Hash()
	want.Id = token.ID[:]
	if want.GetUses() == 0 {
		want.Uses = 1
	}
	if want.GetExpires() == 0 {
		want.Expires = now.Add(time.Hour).UnixNano()
	}
	change(t, by, &storepb.Op{Op: &storepb.Op_PutToken{PutToken: &storepb.PutToken{Token: want, SecretHash: hash[:]}}})
	return token
}

// change does what an administrator asks for, at whichever node leads.
func change(t testing.TB, via *Node, op *storepb.Op) *storepb.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	reply, err := rpc.Ask(ctx, rpc.NewRouter(via.peers, via), rpc.Node.Change,
		&clusterpb.ChangeRequest{Op: op, Caller: &storepb.Caller{Host: "somewhere", Uid: 7}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, reply.GetResult().GetCode(), reply.GetResult().GetMessage())
	return reply.GetResult()
}

// testMount is a host that mounts: what it needs to keep a session.
type testMount struct {
	*session.Client
	credentials *identity.Credentials
	keeper      *certrenew.MountRenewer
}

// join has a host come in by a token.
func join(t testing.TB, by *Node, host string) (*identity.Credentials, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "identity")
	joined, err := certrenew.Join(ctx, newToken(t, by, new(storepb.JoinToken)), host, dir, nil)
	require.NoError(t, err)
	return joined.Credentials, dir
}

// mountAt opens a session of a host that is in, over a network if one is given.
func mountAt(t testing.TB, credentials *identity.Credentials, over ...rpc.Network) *testMount {
	t.Helper()
	m := &testMount{credentials: credentials, keeper: certrenew.ForMount(credentials, quietLogger())}
	running, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go m.keeper.Run(running)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	security := m.keeper.Security()
	for _, network := range over {
		security.Network = network
	}
	client, err := session.Dial(ctx, credentials.Servers(), session.Config{
		Host: credentials.Name().Host, OpTimeout: testWait, Logger: quietLogger(), Security: security, Heard: m.keeper.Update, Roster: m.keeper.RosterVersion,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	})
	m.Client = client
	return m
}

// callerAs calls a node with credentials.
func callerAs(t testing.TB, node *Node, credentials *identity.Credentials) rpc.Node {
	t.Helper()
	security := &rpc.Security{Client: func(protocol string) *tls.Config {
		return credentials.ClientConfig(credentials.Verifier(nil), protocol)
	}}
	remote := rpc.NewClient(node.cfg.Advertise, security)
	t.Cleanup(remote.Close)
	return remote
}

// openNodeClient opens a session of the host of a node.
func openNodeClient(t testing.TB, node *Node) *session.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := node.OpenClient(ctx, session.Config{Host: node.dir.Name, OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	})
	return client
}

// lastEvent waits for nothing: what is asked for has happened.
func lastEvent(t testing.TB, node *Node, kind string) (last *storepb.Event) {
	t.Helper()
	result, err := node.fsm.Query(&storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: &storepb.ListEvents{Viewer: new(storepb.Viewer)}}})
	require.NoError(t, err)
	for _, event := range result.GetEvents() {
		if event.GetEvent() == kind {
			last = event
		}
	}
	require.NotNil(t, last, "no event %s among %v", kind, result.GetEvents())
	return last
}

func signerOf(ns *namespace.Namespace) string {
	return string(ns.SigningAuthority().GetAuthority().GetFingerprint())
}
