package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func TestServersAndMountsComeInWithTokens(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	web, _ := join(t, nodes[0], "web1")
	mount := mountAt(t, web)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
	for _, node := range nodes {
		require.Equal(t, storepb.Code_EXISTS, create(t, openNodeClient(t, node), "lock"))
	}
	joined := lastEvent(t, nodes[0], "host_joined")
	require.Equal(t, "web1", joined.GetHost())
}

// TestAnInterruptedBootstrapContinues has the first server stop after each of the files that it writes.
func TestAnInterruptedBootstrapContinues(t *testing.T) {
	t.Parallel()
	whole := secureConfig(t, "n0")
	whole.Bootstrap = true
	node, err := Open(whole)
	require.NoError(t, err)
	require.NoError(t, node.Close())
	for _, kept := range [][]string{
		{},
		{"lock"},
		{"node.json"},
		{"node.json", consensus.SealKeyFile},
		{"node.json", consensus.SealKeyFile, consensus.BootstrapCAFile},
		{"node.json", consensus.SealKeyFile, consensus.BootstrapCAFile, consensus.CredentialsDir},
	} {
		cfg := whole
		cfg.Metrics, cfg.DataDir = nil, filepath.Join(t.TempDir(), "n0")
		begun := whole
		begun.Metrics, begun.DataDir = nil, filepath.Join(t.TempDir(), "begun")
		first, err := consensus.OpenDirectory(begun.DataDir, consensus.Claim{Name: "n0", Address: cfg.Address, Bootstrap: true})
		require.NoError(t, err)
		half := &Node{cfg: begun, dir: first, logger: quietLogger()}
		half.cfg.Advertise = begun.Address
		require.NoError(t, half.openSecurity())
		require.NoError(t, first.Close())
		require.NoError(t, os.MkdirAll(cfg.DataDir, 0o700))
		for _, name := range kept {
			require.NoError(t, os.Rename(filepath.Join(begun.DataDir, name), filepath.Join(cfg.DataDir, name)))
		}
		node := startNode(t, cfg)
		awaitBootstrapRecorded(t, node)
		join(t, node, "web1")
		require.NoError(t, node.Close())

		cfg.Metrics = nil
		again := startNode(t, cfg) // and goes on with it
		join(t, again, "web2")
		require.NoFileExists(t, filepath.Join(cfg.DataDir, consensus.BootstrapCAFile))
		require.NoError(t, again.Close())
	}
}

func TestADirectoryIsOfOneKindOfCluster(t *testing.T) {
	t.Parallel()
	secure := bootstrapSecure(t)
	cfg := secure.cfg
	require.NoError(t, secure.Close())
	cfg.Metrics, cfg.Insecure = nil, true
	_, err := Open(cfg)
	require.ErrorContains(t, err, "without --insecure")

	plain := startNodes(t, 1)[0]
	cfg = plain.cfg
	require.NoError(t, plain.Close())
	cfg.Metrics, cfg.Insecure = nil, false
	_, err = Open(cfg)
	require.ErrorContains(t, err, "with --insecure")

	aimless := secureConfig(t, "n1")
	_, err = Open(aimless)
	require.ErrorContains(t, err, "--token")
}

// refusedCall requires that nobody answers a call but with a refusal of the connection.
func refusedCall(t testing.TB, to rpc.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	_, err := to.Status(ctx, new(clusterpb.StatusRequest))
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "it is refused at once: %v", err)
}

func TestAStrangerIsToldNothing(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	other := bootstrapSecure(t)
	theirs, _ := join(t, other, "web1")
	plain := rpc.NewClient(node.cfg.Advertise, nil)
	defer plain.Close()
	refusedCall(t, plain)
	anybody := rpc.NewClient(node.cfg.Advertise, &rpc.Security{Client: func(protocol string) *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, InsecureSkipVerify: true}
	}})
	defer anybody.Close()
	refusedCall(t, anybody)
	leaf := theirs.Leaf()
	foreign := rpc.NewClient(node.cfg.Advertise, &rpc.Security{Client: func(protocol string) *tls.Config {
		config := theirs.ClientConfig(theirs.Verifier(nil), protocol)
		config.VerifyConnection, config.InsecureSkipVerify = nil, true // he does not mind
		return config
	}})
	defer foreign.Close()
	refusedCall(t, foreign)
	require.NotNil(t, leaf)

	mount, _ := join(t, node, "web1")
	conn, err := tls.Dial("tcp", node.cfg.Advertise, mount.ClientConfig(mount.Verifier(nil), identity.ProtocolRaft))
	if err == nil { // in TLS 1.3 the client is done before the server looks at his certificate
		require.NoError(t, conn.SetDeadline(time.Now().Add(testWait)))
		_, err = conn.Read(make([]byte, 1))
	}
	alert := new(net.OpError)
	require.ErrorAs(t, err, &alert)
	require.Equal(t, "remote error", alert.Op, "%v", err)
}

func TestTokensLetInWhomTheySay(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	try := func(token *identity.Token, host string) error {
		_, err := certrenew.Join(ctx, token, host, filepath.Join(t.TempDir(), "identity"), func(identity.SealKey) error { return nil })
		return err
	}
	once := newToken(t, node, new(storepb.JoinToken))
	require.NoError(t, try(once, "web1"))
	require.ErrorContains(t, try(once, "web2"), "used up")
	forged := *newToken(t, node, new(storepb.JoinToken))
	forged.Secret = once.Secret
	require.ErrorContains(t, try(&forged, "web2"), "secret")
	posing := *newToken(t, node, new(storepb.JoinToken))
	posing.Role = identity.Server
	require.ErrorContains(t, try(&posing, "web2"), "for a client")
	require.ErrorContains(t, try(newToken(t, node, &storepb.JoinToken{Host: "web3"}), "web2"), "web3")
	require.ErrorContains(t, try(newToken(t, node, new(storepb.JoinToken)), "web1"), "another key")
	require.NoError(t, try(newToken(t, node, &storepb.JoinToken{Host: "web1"}), "web1"), "it was made for that one")
	gone := newToken(t, node, new(storepb.JoinToken))
	change(t, node, &storepb.Op{Op: &storepb.Op_DeleteToken{DeleteToken: &storepb.DeleteToken{Id: gone.ID[:]}}})
	require.ErrorContains(t, try(gone, "web2"), "not known")
	other := bootstrapSecure(t)
	foreign := *newToken(t, other, new(storepb.JoinToken))
	foreign.Addresses = []string{node.cfg.Advertise}
	refused := new(identity.Refused)
	require.ErrorAs(t, try(&foreign, "web2"), &refused)
	require.Equal(t, identity.OtherCluster, refused.Reason)
	require.NotNil(t, lastEvent(t, node, "join_refused"))
}

// withToken signs a request with the secret of a token.
func withToken(request *clusterpb.EnrollRequest, secret identity.Secret) *clusterpb.EnrollRequest {
	request.TokenKey, request.TokenSignature = secret.Sign(request.GetRequest())
	return request
}

// TestALostAnswerIsGivenAgain has a host join whose first answer was lost: with one use of the token, and
// the same certificate.
func TestALostAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	token := newToken(t, node, &storepb.JoinToken{Role: storepb.Role_SERVER})
	key, err := identity.NewKey()
	require.NoError(t, err)
	request, err := key.Request(identity.Name{Role: identity.Server, Host: "n1"})
	require.NoError(t, err)
	enroll := withToken(&clusterpb.EnrollRequest{TokenId: token.ID[:], Host: "n1", Request: request}, token.Secret)
	first := ask(t, node, rpc.Node.Enroll, enroll)
	require.Equal(t, storepb.Code_OK, first.GetResult().GetCode(), first.GetResult().GetMessage())
	require.Len(t, first.GetSealKey(), len(identity.SealKey{}))
	index := uint64(0)
	node.fsm.View(func(ns *namespace.Namespace) { index = uint64(ns.Index()) })
	second := ask(t, node, rpc.Node.Enroll, enroll)
	require.Equal(t, first.GetCertificate(), second.GetCertificate())
	require.Equal(t, first.GetSealKey(), second.GetSealKey())
	node.fsm.View(func(ns *namespace.Namespace) {
		require.Equal(t, index, uint64(ns.Index()), "nothing was proposed again")
	})

	renewal := ask(t, node, rpc.Node.Enroll, &clusterpb.EnrollRequest{Host: "n1", Request: request})
	require.Equal(t, storepb.Code_OK, renewal.GetResult().GetCode())
	require.Empty(t, renewal.GetSealKey(), "who has not shown the secret does not get it")
	wrong := ask(t, node, rpc.Node.Enroll, withToken(&clusterpb.EnrollRequest{TokenId: token.ID[:], Host: "n1", Request: request}, identity.Secret{}))
	require.Empty(t, wrong.GetSealKey())
}

func TestAHostActsForItselfOnly(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	web1, _ := join(t, node, "web1")
	web2, _ := join(t, node, "web2")
	mount := mountAt(t, web1)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
	session := uint64(mount.Session())
	posing := callerAs(t, node, web2)
	refusal := func(err error) string {
		refused := new(rpc.RefusedError)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, storepb.Code_NOT_PERMITTED, refused.Result.GetCode())
		return refused.Error()
	}
	_, err := posing.KeepAlive(t.Context(), &clusterpb.KeepAliveRequest{Session: session})
	require.Contains(t, refusal(err), `may not act for the host "web1"`)
	_, err = posing.Lease(t.Context(), &clusterpb.LeaseRequest{Session: session, Generation: 1, Release: true})
	require.Contains(t, refusal(err), `may not act for the host "web1"`, "others would not be waited for")
	for _, op := range []*storepb.Op{
		createOp("another"),
		{Op: &storepb.Op_CloseSession{CloseSession: new(storepb.CloseSession)}},
		{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "web2", BootId: "b", Started: 1}}},
	} {
		_, err = posing.Execute(t.Context(), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{
			Command: &storepb.Command{Session: session, Seq: 100, Op: op},
		}})
		require.Contains(t, refusal(err), `may not act for the host "web1"`)
	}
	_, err = posing.Execute(t.Context(), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{
		Session: 77, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "web1"}}},
	}}})
	require.Contains(t, refusal(err), `may not act for the host "web1"`)
	for _, method := range []func() error{
		func() error { _, err := posing.Remove(t.Context(), &clusterpb.RemoveRequest{Name: "n0"}); return err },
		func() error { _, err := posing.Change(t.Context(), setRule("x")); return err },
		func() error { _, err := posing.Join(t.Context(), &clusterpb.JoinRequest{}); return err },
	} {
		require.Contains(t, refusal(method()), "that takes a server of this cluster")
	}
	require.Equal(t, storepb.Code_EXISTS, create(t, mount.Client, "lock"), "nothing has come of it")
}

func TestARevokedHostIsShutOutAtOnce(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	web, dir := join(t, nodes[0], "web1")
	mount := mountAt(t, web)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
	open := callerAs(t, nodes[1], web)
	_, err := open.Status(t.Context(), new(clusterpb.StatusRequest))
	require.NoError(t, err)
	hanging := make(chan error, 1)
	go func() { // a question that is kept for half a minute
		reply, err := open.Removals(context.Background(), new(clusterpb.RemovalsRequest))
		if err == nil {
			_, err = open.Removals(context.Background(), &clusterpb.RemovalsRequest{Epoch: reply.GetEpoch(), After: reply.GetLast()})
		}
		hanging <- err
	}()
	change(t, nodes[0], revokeHost("web1"))
	select {
	case err := <-hanging:
		require.Error(t, err)
	case <-time.After(testWait):
		t.Fatal("it was not hung up on")
	}
	refusedCall(t, open)
	require.Eventually(t, func() bool { return len(nodes[0].sessions.live()) == 0 && len(nodes[1].sessions.live()) == 0 }, testWait, time.Millisecond)
	_, err = certrenew.Join(t.Context(), newToken(t, nodes[0], new(storepb.JoinToken)), "web1", dir, nil)
	require.NoError(t, err, "with a token and a new key it may come back")
	credentials, err := identity.Load(dir)
	require.NoError(t, err)
	back := mountAt(t, credentials)
	require.Equal(t, storepb.Code_EXISTS, create(t, back.Client, "lock"))
	revoked := lastEvent(t, nodes[0], "host_revoked")
	require.Equal(t, uint32(7), revoked.GetBy().GetUid())
}

// TestSessionsOfARevokedHostAreEnded, which would live for long, and no other's.
func TestSessionsOfARevokedHostAreEnded(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t, func(cfg *Config) { cfg.SessionTTL = time.Hour })
	for _, name := range []string{"web1", "web2", "web3"} {
		credentials, _ := join(t, node, name)
		require.Equal(t, storepb.Code_OK, create(t, mountAt(t, credentials).Client, name))
	}
	hosts := func() (live []string) {
		for _, record := range node.sessions.live() {
			live = append(live, record.GetHost())
		}
		slices.Sort(live)
		return live
	}
	require.Equal(t, []string{"web1", "web2", "web3"}, hosts())
	change(t, node, revokeHost("web2"))
	require.Eventually(t, func() bool { return slices.Equal([]string{"web1", "web3"}, hosts()) }, testWait, time.Millisecond)
	require.False(t, node.sessions.hasActiveMount("web2", readClocks().mono))
	require.True(t, node.sessions.hasActiveMount("web1", readClocks().mono))
	require.False(t, node.sessions.hasActiveMount("web1", readClocks().mono+time.Hour/2+time.Minute), "it has not for long, then")
}

func TestAMemberIsRemovedBeforeItIsRevoked(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	leader := leaderOf(t, nodes)
	reply := ask(t, leader, rpc.Node.Change, &clusterpb.ChangeRequest{Op: revokeHost("n2")})
	if leader.dir.Name != "n2" {
		require.Equal(t, storepb.Code_BUSY, reply.GetResult().GetCode())
		require.Contains(t, reply.GetResult().GetMessage(), "lockfs member remove n2")
	}
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
	removed, err := rpc.Ask(ctx, rpc.NewRouter(others[0].peers, others[0], others[1]), rpc.Node.Remove, &clusterpb.RemoveRequest{Name: leader.dir.Name})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, removed.GetResult().GetCode(), "also one that led")
	select {
	case err := <-leader.Failed():
		require.ErrorIs(t, err, errRemoved)
	case <-ctx.Done():
		t.Fatal("it does not know")
	}
	for _, node := range others {
		require.NoError(t, node.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool { return ns.Admission(leader.dir.Name).GetRevoked() != 0 }))
		refusedCall(t, callerAs(t, node, leader.security.credentials))
		gone := leader.security.credentials
		require.Equal(t, identity.Revoked, node.security.verifier.Status(gone.Name(), gone.Key().Hash()))
		// Were this node behind, the cluster might know it again, and be led by it.
		require.Equal(t, identity.Unknown, node.security.verifier.Status(gone.Name(), identity.KeyHash{}), "with another key it is heard")
	}
}

// TestCertificatesAreRenewedWhileTheyAreUsed gives certificates for so short a time that all are renewed
// several times.
func TestCertificatesAreRenewedWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2, func(cfg *Config) { cfg.validity = 12 * time.Second })
	web, _ := join(t, nodes[0], "web1")
	mount := mountAt(t, web)
	began := map[*identity.Credentials][]byte{web: web.Leaf().Raw}
	for _, node := range nodes {
		began[node.security.credentials] = node.security.credentials.Leaf().Raw
	}
	ended := mount.ClusterTime().Add(14 * time.Second)
	for round := 0; mount.ClusterTime().Before(ended); round++ {
		require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"+time.Now().String()))
	}
	for credentials, leaf := range began {
		require.NotEqual(t, leaf, credentials.Leaf().Raw, "%v", credentials.Name())
		require.False(t, credentials.Expired(mount.ClusterTime()), "%v", credentials.Name())
	}
	late := callerAs(t, nodes[1], mount.credentials)
	_, err := late.Status(t.Context(), new(clusterpb.StatusRequest))
	require.NoError(t, err)
}

// TestStrangersDoNotHinderRenewals has nobody be let in any more.
func TestStrangersDoNotHinderRenewals(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2, func(cfg *Config) { cfg.validity = 15 * time.Second })
	web, _ := join(t, nodes[0], "web1")
	for _, node := range nodes { // one that does not know the host yet refuses it, and the host asks where strangers ask
		require.Eventually(t, func() (known bool) {
			node.fsm.View(func(ns *namespace.Namespace) { known = ns.Admission("web1") != nil })
			return known
		}, testWait, time.Millisecond)
	}
	mount := mountAt(t, web)
	for _, node := range nodes {
		node.joinServer.Close()
	}
	began := map[*identity.Credentials]*x509.Certificate{web: web.Leaf()}
	for _, node := range nodes {
		began[node.security.credentials] = node.security.credentials.Leaf()
	}
	for credentials, leaf := range began {
		for credentials.Leaf().Equal(leaf) {
			require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"+time.Now().String()), "followers have the time from commands")
			require.False(t, mount.Client.ClusterTime().After(leaf.NotAfter), "%v", credentials.Name())
		}
	}
}

// TestAHostThatWasOffForLongComesBack has the certificate of a host end while it is off.
func TestAHostThatWasOffForLongComesBack(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t, func(cfg *Config) { cfg.validity = 6 * time.Second })
	web, dir := join(t, node, "web1")
	require.Eventually(t, func() bool { return web.Expired(node.clusterTime()) }, testWait, time.Millisecond)
	refusedCall(t, callerAs(t, node, web))
	back, err := identity.Load(dir)
	require.NoError(t, err)
	mount := mountAt(t, back)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
}

func TestAnotherAuthorityTakesOverWhileAllGoesOn(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	web, _ := join(t, nodes[0], "web1")
	off, offDir := join(t, nodes[0], "web2") // which is off meanwhile
	mount := mountAt(t, web)
	token := newToken(t, nodes[0], &storepb.JoinToken{Uses: 5})
	first := web.Signer()
	stop := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				failed <- nil
				return
			default:
			}
			result, err := mount.Mutate(context.Background(), &storepb.Caller{}, createOp(time.Now().String()))
			if err == nil && result.GetCode() != storepb.Code_OK {
				err = errors.New(result.GetMessage())
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	change(t, nodes[0], &storepb.Op{Op: &storepb.Op_AddAuthority{AddAuthority: new(storepb.AddAuthority)}})
	for _, node := range nodes {
		require.Eventually(t, func() bool { return node.security.credentials.Signer() != first }, testWait, time.Millisecond)
	}
	require.Eventually(t, func() bool { return web.Signer() != first }, testWait, time.Millisecond)
	_, err := certrenew.Join(t.Context(), token, "web3", filepath.Join(t.TempDir(), "identity"), nil)
	require.NoError(t, err, "by a token from before")
	require.Equal(t, first, off.Signer())
	back, err := identity.Load(offDir)
	require.NoError(t, err)
	late := mountAt(t, back)
	require.Eventually(t, func() bool { return back.Signer() != first }, testWait, time.Millisecond)
	require.NotZero(t, late.Session())
	require.Eventually(t, func() bool {
		authorities := 0
		nodes[0].fsm.View(func(ns *namespace.Namespace) { authorities = len(ns.Authorities()) })
		return authorities == 1
	}, testWait, time.Millisecond, "nobody needs the first any more")
	close(stop)
	require.NoError(t, <-failed)
}

// TestAnyLeaderGivesCertificates has the first server go.
func TestAnyLeaderGivesCertificates(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	leader := leaderOf(t, nodes)
	token := newToken(t, leader, new(storepb.JoinToken))
	require.NoError(t, leader.Close())
	for _, node := range nodes {
		if node != leader {
			token.Addresses = append([]string{node.cfg.Advertise}, token.Addresses...)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	joined, err := certrenew.Join(ctx, token, "web1", filepath.Join(t.TempDir(), "identity"), nil)
	require.NoError(t, err)
	mount := mountAt(t, joined.Credentials)
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
}

// TestAClockThatIsAYearOffLocksNobodyOut sets the clock of the leader a year ahead and a year back while
// hosts come and go. The median of the voters counts.
func TestAClockThatIsAYearOffLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": 365 * 24 * time.Hour, "behind": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			wrong := make(map[string]*atomic.Int64) // how wrong a node's clock is
			nodes := startSecureNodes(t, 3, func(cfg *Config) {
				mine := new(atomic.Int64)
				wrong[cfg.Name] = mine
				cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(mine.Load())) }
			})
			leader := leaderOf(t, nodes)
			web, _ := join(t, leader, "web1")
			mount := mountAt(t, web)
			wrong[leader.cfg.Name].Store(int64(off))
			_, err := leader.readIndex.probeVoters(leader.leadership.term())
			require.NoError(t, err)
			require.Equal(t, storepb.Code_OK, create(t, mount.Client, "lock"))
			again, _ := join(t, leader, "web2")
			require.Equal(t, storepb.Code_EXISTS, create(t, mountAt(t, again).Client, "lock"))
			require.WithinDuration(t, time.Now(), leader.clusterTime(), time.Minute)
		})
	}
}

// TestAllComeBackAfterLong has every certificate of a cluster end while all is off.
func TestAllComeBackAfterLong(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3, func(cfg *Config) { cfg.validity = 12 * time.Second })
	web, dir := join(t, nodes[0], "web1")
	var configs []Config
	for _, node := range nodes {
		require.NoError(t, node.Close())
		cfg := node.cfg
		cfg.Metrics = nil
		configs = append(configs, cfg)
	}
	require.Eventually(t, func() bool {
		for _, node := range nodes {
			if !node.security.credentials.Expired(time.Now()) {
				return false
			}
		}
		return web.Expired(time.Now())
	}, testWait, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	for i, cfg := range configs {
		node, err := Open(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Close() })
		nodes[i] = node
	}
	for _, node := range nodes {
		require.NoError(t, node.WaitReady(ctx))
	}
	back, err := identity.Load(dir)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, create(t, mountAt(t, back).Client, "lock"))
	for _, node := range nodes {
		require.Eventually(t, func() bool { return !node.security.credentials.Expired(time.Now()) }, testWait, time.Millisecond)
	}
}

func TestRootOfASquashedHostIsNobody(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	joined, err := certrenew.Join(ctx, newToken(t, node, &storepb.JoinToken{SquashRoot: true}), "guest", filepath.Join(t.TempDir(), "identity"), nil)
	require.NoError(t, err)
	require.True(t, joined.SquashRoot)
	mount := mountAt(t, joined.Credentials)
	require.NoError(t, mount.AwaitUpdate(ctx, mount.keeper.Known()))
	require.True(t, mount.keeper.RootSquashed())
	trusted, _ := join(t, node, "web1")
	other := mountAt(t, trusted)
	require.NoError(t, other.AwaitUpdate(ctx, other.keeper.Known()))
	require.False(t, other.keeper.RootSquashed())
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, other.AwaitUpdate(ended, make(chan struct{})), context.Canceled)
	require.Equal(t, storepb.Code_OK, create(t, other.Client, "lock"))
	remove := &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte("lock")}}}
	result, err := mount.Mutate(ctx, new(storepb.Caller), remove)
	require.NoError(t, err)
	require.NotEqual(t, storepb.Code_OK, result.GetCode(), "the directory is sticky, and the lock root's")
	bare := callerAs(t, node, joined.Credentials)
	reply, err := bare.Execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{
		Session: uint64(mount.Session()), Seq: 1000, Op: remove,
	}}})
	require.NoError(t, err)
	require.NotEqual(t, storepb.Code_OK, reply.GetResult().GetCode(), "nor does leaving out who asks help")
	for uid, want := range map[uint32]*storepb.Viewer{
		0: {Uid: namespace.Nobody, Gid: namespace.Nobody, Groups: []uint32{4}}, 3: {Uid: 3, Gid: 3, Groups: []uint32{0, 4}},
	} {
		for host, want := range map[string]*storepb.Viewer{"guest": want, "web1": {Uid: uid, Gid: uid, Groups: []uint32{0, 4}}} {
			list := &storepb.ListEvents{Viewer: &storepb.Viewer{Uid: uid, Gid: uid, Groups: []uint32{0, 4}}}
			node.identityCheck.restrictViewer(rpc.Caller{Role: rpc.RoleClient, Host: host}, &storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: list}})
			require.True(t, proto.Equal(want, list.GetViewer()), "%s: %v", host, list)
		}
	}
	result, err = other.Mutate(ctx, new(storepb.Caller), remove)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
}

func TestSessionsAreNotOpenedTooOften(t *testing.T) {
	t.Parallel()
	node := bootstrapSecure(t)
	web, _ := join(t, node, "web1")
	caller := callerAs(t, node, web)
	crowded := false
	for id := uint64(1); id <= 2*rateBurst && !crowded; id++ {
		_, err := caller.Execute(t.Context(), &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: &storepb.Command{
			Session: id, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "web1", BootId: "b"}}},
		}}})
		if refused := new(rpc.RefusedError); errors.As(err, &refused) {
			require.Equal(t, storepb.Code_BUSY, refused.Result.GetCode())
			crowded = true
		} else {
			require.NoError(t, err)
		}
	}
	require.True(t, crowded)
	_, err := callerAs(t, node, node.security.credentials).Execute(t.Context(), statFs)
	require.NoError(t, err, "others go on")
}

func TestRateLimitsRefill(t *testing.T) {
	t.Parallel()
	a := newRateLimits()
	for range rateBurst {
		require.True(t, a.allow("somebody", time.Hour))
	}
	require.False(t, a.allow("somebody", time.Hour))
	require.True(t, a.allow("somebody else", time.Hour))
	require.True(t, a.allow("somebody", time.Hour+rateInterval))
	require.False(t, a.allow("somebody", time.Hour+rateInterval))
	require.True(t, a.mayReport("somebody", time.Hour))
	require.False(t, a.mayReport("somebody", time.Hour+time.Second))
	require.True(t, a.mayReport("somebody", time.Hour+reportInterval))
}

// TestHostsJoinWhileTheLeaderChanges has the leader go in the middle of it: each host comes in, and uses
// the token once.
func TestHostsJoinWhileTheLeaderChanges(t *testing.T) {
	t.Parallel()
	const hosts = 8
	nodes := startSecureNodes(t, 3)
	leader := leaderOf(t, nodes)
	token := newToken(t, leader, &storepb.JoinToken{Uses: hosts})
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	joined := make(chan error, hosts)
	for i := range hosts {
		dir := filepath.Join(t.TempDir(), "identity")
		go func() {
			_, err := certrenew.Join(ctx, token, fmt.Sprintf("web%d", i), dir, nil)
			joined <- err
		}()
		if i == hosts/2 {
			require.NoError(t, <-joined, "some are in before")
			require.NoError(t, leader.Close())
		}
	}
	for range hosts - 1 {
		require.NoError(t, <-joined)
	}
	left := slices.DeleteFunc(nodes, func(n *Node) bool { return n == leader })
	next := leaderOf(t, left)
	next.fsm.View(func(ns *namespace.Namespace) {
		for i := range hosts {
			require.Zero(t, ns.Admission(fmt.Sprintf("web%d", i)).GetRevoked())
			require.NotNil(t, ns.Admission(fmt.Sprintf("web%d", i)))
		}
		require.Len(t, ns.Tokens(), 3)
		for _, known := range ns.Tokens() {
			require.Zero(t, known.GetUses(), "%x", known.GetId())
		}
	})
}
