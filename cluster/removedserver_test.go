package cluster

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// These tests have the identity, or the whole disk, of a server that was removed.

// impostor is a server that an attacker runs. It counts the calls that reach it, and answers as it likes
// when it is asked for a proof.
type impostor struct {
	rpc.Node // nil: whatever else is called ends the test
	address  string
	calls    atomic.Int32
	prove    func(*clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error)
}

// startImpostor runs one with the credentials that were stolen.
func startImpostor(
	t *testing.T, credentials *identity.Credentials, prove func(*clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error),
) *impostor {
	t.Helper()
	i := &impostor{prove: prove}
	judge := letsAll{credentials}
	port, err := rpc.Listen("127.0.0.1:0", &rpc.Security{
		Server: credentials.ServerConfig(judge, rpc.ProtocolRPC, rpc.ProtocolRaft, rpc.ProtocolJoin),
		Client: func(protocol string) *tls.Config { return credentials.ClientConfig(judge, protocol) },
		Caller: newCertVerifier(credentials, time.Now).caller,
	}, rpc.PortReport{Crowded: func(rpc.Caller) {}, Failed: func(rpc.Caller, error) {}, Malformed: func() {}})
	require.NoError(t, err)
	i.address = port.Addr().String()
	calls := rpc.NewServer(i, func() {}, func(rpc.Caller) {})
	joins := rpc.NewJoinServer(i, func() {}, func(rpc.Caller) {})
	go func() { _ = calls.Serve(port.RPC()) }()
	go func() { _ = joins.Serve(port.Join()) }()
	go func() { _ = port.Serve() }()
	t.Cleanup(func() {
		_ = port.Close()
		calls.Close()
		joins.Close()
	})
	return i
}

// letsAll is a judge that lets everybody in whose certificate can be read.
type letsAll struct{ *identity.Credentials }

func (l letsAll) Now() time.Time { return l.Issued() }

func (letsAll) Status(identity.Name, identity.KeyHash) identity.Status { return identity.Admitted }

func (i *impostor) ProveServer(_ context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return i.prove(req)
}

func (i *impostor) Enroll(context.Context, *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	i.calls.Add(1)
	return new(clusterpb.EnrollReply), nil
}

func (i *impostor) Execute(context.Context, *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	i.calls.Add(1)
	return new(clusterpb.ExecuteReply), nil
}

func (i *impostor) KeepAlive(context.Context, *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
	i.calls.Add(1)
	return new(clusterpb.KeepAliveReply), nil
}

func (i *impostor) Status(context.Context, *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	i.calls.Add(1)
	return new(clusterpb.StatusReply), nil
}

// refusesToProve is what a server answers that has nobody to ask.
func refusesToProve(*clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return nil, refuse(storepb.Code_NOT_PERMITTED, "there is no leader")
}

// relaysProofsOf has a server of the cluster prove what it is.
func relaysProofsOf(t *testing.T, node *Node) func(*clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return func(req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
		peers := rpc.NewJoinPeers(&rpc.Security{Client: anybodysSecurity})
		defer peers.Close()
		return peers.Node(node.cfg.Advertise).ProveServer(t.Context(), req)
	}
}

// forgesProofs signs with the key of the authority, as the disk of a removed server has it.
func forgesProofs(t *testing.T, authority *identity.Authority, credentials *identity.Credentials) func(*clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	return func(req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
		signature, err := authority.Prove(identity.Nonce(req.GetNonce()), credentials.Key().Hash())
		require.NoError(t, err)
		return &clusterpb.ProveServerReply{Signature: signature, Signer: [][]byte{authority.Certificate().Raw}}, nil
	}
}

// forgeServer is an identity that somebody makes with the key of an authority.
func forgeServer(t *testing.T, authority *identity.Authority, host string) *identity.Credentials {
	t.Helper()
	key, err := identity.NewKey()
	require.NoError(t, err)
	der, err := key.Request(identity.Name{Role: identity.Server, Host: host})
	require.NoError(t, err)
	request, err := identity.ParseRequest(der)
	require.NoError(t, err)
	leaf, err := authority.Issue(request, time.Now(), identity.Validity)
	require.NoError(t, err)
	forged, err := identity.NewCredentials(key, identity.IssuedCert{Leaf: leaf, Authorities: [][]byte{authority.Certificate().Raw}})
	require.NoError(t, err)
	return forged
}

// dialOnly has a host that was started anew try to mount through one server.
func dialOnly(t *testing.T, identityDir, server string) error {
	t.Helper()
	credentials, err := identity.Load(identityDir)
	require.NoError(t, err)
	keeper := certrenew.ForMount(credentials, quietLogger())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	client, err := session.Dial(ctx, []string{server}, session.Config{
		Host: credentials.Name().Host, OpTimeout: testWait, Logger: quietLogger(), Security: keeper.Security(), Heard: keeper.Update, Roster: keeper.RosterVersion,
	})
	if err == nil {
		_ = client.Close(ctx)
	}
	return err
}

// removeServer removes a member that does not lead, and returns it and the ones that stay.
func removeServer(t *testing.T, nodes []*Node) (removed *Node, stay []*Node) {
	t.Helper()
	leader := leaderOf(t, nodes)
	removed = nodes[slices.IndexFunc(nodes, func(n *Node) bool { return n != leader })]
	require.Equal(t, storepb.Code_OK, ask(t, leader, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: removed.dir.Name}).GetResult().GetCode())
	require.Eventually(t, func() (revoked bool) {
		leader.fsm.View(func(ns *namespace.Namespace) { revoked = ns.Admission(removed.dir.Name).GetRevoked() != 0 })
		return revoked
	}, testWait, time.Millisecond)
	return removed, slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == removed })
}

// TestAHostAsksNoRemovedServer has hosts that reach only a server that was removed.
func TestAHostAsksNoRemovedServer(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	web, webDir := join(t, nodes[0], "web1")
	_, awayDir := join(t, nodes[0], "web2") // is off while the server is removed
	mount := mountAt(t, web)
	before := newToken(t, nodes[0], &storepb.JoinToken{Uses: 5})
	removed, stay := removeServer(t, nodes)
	stolen := removed.security.credentials
	require.Eventually(t, func() bool {
		return web.Verifier(nil).Status(stolen.Name(), stolen.Key().Hash()) == identity.Revoked
	}, testWait, time.Millisecond, "the mount is told by a keepalive")
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))

	for what, prove := range map[string]func(*clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error){
		"it proves nothing": refusesToProve, "it relays the proof of another server": relaysProofsOf(t, stay[0]),
	} {
		fake := startImpostor(t, stolen, prove)
		require.ErrorContains(t, dialOnly(t, webDir, fake.address), "revoked", what)
		require.ErrorContains(t, dialOnly(t, awayDir, fake.address), "does not prove that it is still a server", what)
		loaded, err := identity.Load(awayDir)
		require.NoError(t, err)
		admin, err := NewAdmin([]string{fake.address}, certrenew.ForCommand(loaded))
		require.NoError(t, err)
		briefly := func(do func(context.Context)) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			do(ctx)
		}
		briefly(func(ctx context.Context) { _, err = admin.Sessions(ctx) })
		require.ErrorContains(t, err, "does not prove", what)
		for _, token := range []*identity.Token{before, newToken(t, stay[0], new(storepb.JoinToken))} {
			token.Addresses = []string{fake.address}
			briefly(func(ctx context.Context) {
				_, err = certrenew.Join(ctx, token, "web3", filepath.Join(t.TempDir(), "identity"), nil)
			})
			require.ErrorContains(t, err, "does not prove", what)
		}
		admin.Close()
		require.Zero(t, fake.calls.Load(), what)
	}

	// A host that was away finds the cluster by any server that is left.
	require.NoError(t, dialOnly(t, awayDir, stay[1].cfg.Advertise))
	late, err := identity.Load(awayDir)
	require.NoError(t, err)
	require.Equal(t, identity.Revoked, late.Verifier(nil).Status(stolen.Name(), stolen.Key().Hash()), "and has kept what it was told there")

	// The HTTP endpoint of a mount lets in servers of the cluster, and not this one.
	for credentials, want := range map[*identity.Credentials]bool{stolen: false, stay[0].security.credentials: true} {
		require.Equal(t, want, letsIn(t, web.ServerConfig(mount.keeper.Judge(), protocolHTTP), credentials, protocolHTTP), "%v", credentials.Name())
	}
}

// letsIn reports whether a port answers a host with credentials.
func letsIn(t *testing.T, config *tls.Config, credentials *identity.Credentials, protocol string) bool {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("x"))
			_ = conn.Close()
		}
	}()
	dialing := credentials.ClientConfig(letsAll{credentials}, protocol)
	dialing.VerifyConnection, dialing.InsecureSkipVerify = nil, true
	conn, err := tls.Dial("tcp", listener.Addr().String(), dialing)
	if err != nil {
		return false
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// TestAllServersWereReplaced has a host come back that knows none of the servers that there are.
func TestAllServersWereReplaced(t *testing.T) {
	t.Parallel()
	first := bootstrapSecure(t)
	_, dir := join(t, first, "web1")
	cfg := secureConfig(t, "n1")
	enrollNode(t, first, cfg)
	second := startNode(t, cfg)
	require.Equal(t, storepb.Code_OK, ask(t, first, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: first.dir.Name, Replacement: "n1"}).GetResult().GetCode())
	require.NoError(t, dialOnly(t, dir, second.cfg.Advertise))
}

// TestARotationShutsOutTheDiskOfARemovedServer has an attacker with all that the disk of a removed server
// had, the key of the authority included.
func TestARotationShutsOutTheDiskOfARemovedServer(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	web, webDir := join(t, nodes[0], "web1")
	away, _ := join(t, nodes[0], "web2") // is off until after the rotation
	mount := mountAt(t, web)
	removed, stay := removeServer(t, nodes)
	authority, err := removed.certIssuer.signer.current()
	require.NoError(t, err)
	stolen := removed.security.credentials
	forged := forgeServer(t, authority, "n9")
	sealBefore, err := identity.LoadSealKey(filepath.Join(removed.dir.Path, consensus.SealKeyFile))
	require.NoError(t, err)

	// Before the rotation: neither with the key of the server, nor for a token that was made since.
	fake := startImpostor(t, stolen, forgesProofs(t, authority, stolen))
	require.Eventually(t, func() bool {
		return web.Verifier(nil).Status(stolen.Name(), stolen.Key().Hash()) == identity.Revoked
	}, testWait, time.Millisecond)
	require.ErrorContains(t, dialOnly(t, webDir, fake.address), "revoked")
	posing := startImpostor(t, forged, forgesProofs(t, authority, forged))
	token := newToken(t, stay[0], new(storepb.JoinToken))
	token.Addresses = []string{posing.address}
	_, err = certrenew.Join(t.Context(), token, "web3", filepath.Join(t.TempDir(), "identity"), nil)
	require.ErrorContains(t, err, "the join token is not known")

	change(t, stay[0], &storepb.Op{Op: &storepb.Op_AddAuthority{AddAuthority: new(storepb.AddAuthority)}})
	require.Eventually(t, func() bool { return web.Signer() != authority.Fingerprint() && len(web.Authorities()) > 0 }, testWait, time.Millisecond)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
	require.ErrorContains(t, dialOnly(t, webDir, posing.address), "of another cluster")
	after := newToken(t, stay[0], new(storepb.JoinToken))
	after.Addresses = []string{posing.address}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = certrenew.Join(ctx, after, "web3", filepath.Join(t.TempDir(), "identity"), nil)
	require.ErrorContains(t, err, "of another cluster")

	// A host that was off knows the older authority only, until it reaches any server of the cluster.
	peers := rpc.NewPeers(certrenew.ForCommand(away))
	defer peers.Close()
	_, err = peers.Node(stay[0].cfg.Advertise).Status(t.Context(), new(clusterpb.StatusRequest))
	require.NoError(t, err)
	_, err = peers.Node(posing.address).Status(t.Context(), new(clusterpb.StatusRequest))
	require.ErrorContains(t, err, "nor a later one")
	require.Zero(t, posing.calls.Load())
	require.Zero(t, fake.calls.Load())

	// Servers hear nobody with such a certificate either, whatever it speaks.
	for _, node := range stay {
		require.Eventually(t, func() bool {
			return !letsIn(t, node.security.credentials.ServerConfig(node.security.verifier, identity.ProtocolRaft), forged, identity.ProtocolRaft)
		}, testWait, time.Millisecond)
		require.True(t, letsIn(t, node.security.credentials.ServerConfig(node.security.verifier, identity.ProtocolRaft), stay[0].security.credentials, identity.ProtocolRaft))
	}

	// The seal key is another one, which each server has, and which the state holds for them only.
	path := func(node *Node) string { return filepath.Join(node.dir.Path, consensus.SealKeyFile) }
	for _, node := range stay {
		require.Eventually(t, func() bool {
			seal, err := identity.LoadSealKey(path(node))
			return err == nil && seal != sealBefore
		}, testWait, time.Millisecond)
	}
	one, err := os.ReadFile(path(stay[0]))
	require.NoError(t, err)
	other, err := os.ReadFile(path(stay[1]))
	require.NoError(t, err)
	require.Equal(t, one, other)
	var record *storepb.AuthorityRecord
	stay[0].fsm.View(func(ns *namespace.Namespace) { record = ns.SigningAuthority() })
	newest := stay[0].security.verifier.Authorities()[0]
	_, err = identity.Decrypt(newest, record.GetSealedKey(), sealBefore)
	require.ErrorIs(t, err, identity.ErrWrongSealKey)
	require.Len(t, record.GetShares(), 2)
	for _, share := range record.GetShares() {
		_, err = stolen.Key().OpenShare(share.GetShare(), identity.FingerprintOf(newest))
		require.Error(t, err)
	}

	// A server that joins later gets a share, and can lead.
	cfg := secureConfig(t, "n7")
	enrollNode(t, stay[0], cfg)
	joined := startNode(t, cfg)
	require.Eventually(t, func() bool {
		joined.fsm.View(func(ns *namespace.Namespace) { record = ns.SigningAuthority() })
		return len(record.GetShares()) == 3
	}, testWait, time.Millisecond)
	_, err = joined.certIssuer.signer.current()
	require.NoError(t, err)
}
