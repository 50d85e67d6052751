package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// cutCluster is a cluster with certificates, whose links can be cut.
type cutCluster struct {
	nodes    []*Node
	networks map[*Node]*cutNetwork
}

func startCutCluster(t testing.TB, n int) *cutCluster {
	t.Helper()
	var networks []*cutNetwork
	c := &cutCluster{networks: make(map[*Node]*cutNetwork)}
	c.nodes = startSecureNodes(t, n, func(cfg *Config) {
		networks = append(networks, newCutNetwork())
		cfg.Network = networks[len(networks)-1]
	})
	for i, node := range c.nodes {
		c.networks[node] = networks[i]
	}
	return c
}

// setCut cuts the link between two servers, or heals it.
func (c *cutCluster) setCut(a, b *Node, cut bool) {
	c.networks[a].set(b.cfg.Advertise, cut)
	c.networks[b].set(a.cfg.Advertise, cut)
}

// others returns the followers.
func (c *cutCluster) others(leader *Node) (followers []*Node) {
	for _, node := range c.nodes {
		if node != leader {
			followers = append(followers, node)
		}
	}
	return followers
}

func forwardedBy(node *Node) int { return int(testutil.ToFloat64(node.cfg.Metrics.forwarded)) }

// TestAHostThatReachesAQuorumButNotTheLeaderKeepsItsLocks cuts a mount and a server from the leader, for
// longer than a session lasts.
func TestAHostThatReachesAQuorumButNotTheLeaderKeepsItsLocks(t *testing.T) {
	t.Parallel()
	c := startCutCluster(t, 3)
	leader := leaderOf(t, c.nodes)
	cut, common := c.others(leader)[0], c.others(leader)[1]
	web, _ := join(t, leader, "web1")
	network := newCutNetwork()
	mount := mountAt(t, web, network)
	onServer := openNodeClient(t, cut)
	sessions := map[*session.Client]any{mount.Client: mount.Session(), onServer: onServer.Session()}
	require.Equal(t, storepb.Code_OK, create(t, mount.Client, "before"))
	term := leader.leadership.term()

	network.set(leader.cfg.Advertise, true)
	c.setCut(cut, leader, true)
	other := openNodeClient(t, common)
	for began, i := time.Now(), 0; time.Since(began) < 3*leader.cfg.SessionTTL; i++ {
		for j, client := range []*session.Client{mount.Client, onServer} {
			name := fmt.Sprint(i, "-", j)
			require.Equal(t, storepb.Code_OK, create(t, client, name))
			require.Equal(t, storepb.Code_OK, lookup(t, client, name))
			require.Equal(t, storepb.Code_EXISTS, create(t, other, name))
		}
		require.Equal(t, storepb.Code_OK, create(t, other, fmt.Sprint(i)))
		for _, client := range []*session.Client{mount.Client, onServer} {
			require.Equal(t, storepb.Code_OK, lookup(t, client, fmt.Sprint(i)), "what others do is seen at once")
		}
	}
	for client, before := range sessions {
		require.Equal(t, before, client.Session(), "the session lasts")
	}
	require.Equal(t, term, leader.leadership.term(), "the server that is cut off from the leader does not disturb it")
	require.NotZero(t, forwardedBy(common))

	network.set(leader.cfg.Advertise, false)
	c.setCut(cut, leader, false)
	direct := func(client *session.Client) func() bool {
		return func() bool {
			before := forwardedBy(common)
			for range 10 {
				require.Equal(t, storepb.Code_EXISTS, create(t, client, "before"))
			}
			return forwardedBy(common) == before
		}
	}
	require.Eventually(t, direct(mount.Client), testWait, 100*time.Millisecond, "the mount goes the direct way again")
	require.Eventually(t, direct(onServer), testWait, 100*time.Millisecond, "and so does the server")
}

// TestALeaseOfAMountOnADetourIsRevoked has a mount cache what it reads although it cannot reach the
// leader, and another host change it.
func TestALeaseOfAMountOnADetourIsRevoked(t *testing.T) {
	t.Parallel()
	c := startCutCluster(t, 3)
	leader := leaderOf(t, c.nodes)
	web, _ := join(t, leader, "web1")
	network := newCutNetwork()
	network.set(leader.cfg.Advertise, true)
	mount := mountAt(t, web, network)
	other := openNodeClient(t, leader)
	ask := &storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: namespace.RootIno}}}
	common := c.others(leader)
	requests := func() int { return forwardedBy(common[0]) + forwardedBy(common[1]) }
	for i := range 10 {
		cached := func() bool {
			before := requests()
			for range 100 {
				_, err := mount.Query(t.Context(), ask)
				require.NoError(t, err)
			}
			return requests()-before < 50
		}
		if leader.cfg.Leases {
			require.Eventually(t, cached, testWait, time.Millisecond, "the lease is renewed over the detour")
		}
		name := fmt.Sprint(i)
		require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, mount.Client, name))
		require.Equal(t, storepb.Code_OK, create(t, other, name))
		require.Equal(t, storepb.Code_OK, lookup(t, mount.Client, name))
	}
}

// forwarder is a server, or a host that pretends to be one, which forwards what it likes.
func forwarder(t testing.TB, credentials *identity.Credentials) *rpc.Forwarder {
	t.Helper()
	f := rpc.NewForwarder(certrenew.ForMount(credentials, quietLogger()).Security(), func() string { return "" })
	t.Cleanup(f.Close)
	return f
}

func clientCaller(credentials *identity.Credentials) rpc.Caller {
	return rpc.Caller{Role: rpc.RoleClient, Host: credentials.Name().Host, Key: identity.KeyHashOf(credentials.Leaf())}
}

func forwardExecute(t testing.TB, f *rpc.Forwarder, to *Node, caller rpc.Caller, cmd *storepb.Command) (*storepb.Result, error) {
	t.Helper()
	reply, err := rpc.Forward(rpc.WithCaller(t.Context(), caller), f, to.cfg.Advertise, rpc.Node.Execute,
		&clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: cmd}})
	if err == nil && reply.GetOutcome() != clusterpb.Outcome_DONE {
		return nil, fmt.Errorf("outcome %v", reply.GetOutcome())
	}
	return reply.GetResult(), err
}

func openSessionOf(host string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: host, BootId: "b", Started: 1}}}
}

// TestAForwardedCallHasTheRightsOfItsCaller: the leader judges the host that called, not the server that
// forwards.
func TestAForwardedCallHasTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	leader := leaderOf(t, nodes)
	follower := nodes[0]
	if follower == leader {
		follower = nodes[1]
	}
	web1, _ := join(t, leader, "web1")
	web2, _ := join(t, leader, "web2")
	by := forwarder(t, follower.security.credentials)
	refused := new(rpc.RefusedError)
	ctx := rpc.WithCaller(t.Context(), clientCaller(web1))

	_, err := rpc.Forward(ctx, by, leader.cfg.Advertise, rpc.Node.Change, setRule("x/*"))
	require.ErrorAs(t, err, &refused, "a server may, a mount may not")
	require.Contains(t, refused.Error(), "client web1")
	require.Contains(t, refused.Error(), "through "+follower.dir.Name)
	_, err = rpc.Forward(ctx, by, leader.cfg.Advertise, rpc.Node.Remove, &clusterpb.RemoveRequest{Name: follower.dir.Name})
	require.ErrorAs(t, err, &refused)

	result, err := forwardExecute(t, by, leader, clientCaller(web1), &storepb.Command{Session: 100, Op: openSessionOf("web1")})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	command := &storepb.Command{Session: 100, Seq: 1, Caller: &storepb.Caller{Host: "web2"}, Op: createOp("lock")}
	_, err = forwardExecute(t, by, leader, clientCaller(web2), command)
	require.ErrorAs(t, err, &refused, "the session is another host's")
	_, err = forwardExecute(t, by, leader, clientCaller(web2), &storepb.Command{Session: 101, Op: openSessionOf(follower.dir.Name)})
	require.ErrorAs(t, err, &refused, "nor is it the forwarding server's")
	result, err = forwardExecute(t, by, leader, clientCaller(web1), command)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())

	for what, caller := range map[string]rpc.Caller{
		"another role": {Role: rpc.RoleServer, Host: "web1", Key: clientCaller(web1).Key},
		"another key":  {Role: rpc.RoleClient, Host: "web1", Key: clientCaller(web2).Key},
		"nobody known": {Role: rpc.RoleClient, Host: "web9", Key: clientCaller(web1).Key},
	} {
		_, err = forwardExecute(t, by, leader, caller, command)
		require.ErrorAs(t, err, &refused, what)
		require.Equal(t, storepb.Code_NOT_PERMITTED, refused.Code(), what)
	}
	for _, role := range []rpc.Role{rpc.RoleLocal, rpc.RoleUser, rpc.RoleInsecure} {
		_, err = forwardExecute(t, by, leader, rpc.Caller{Role: role, Host: "web1", Key: clientCaller(web1).Key}, command)
		require.ErrorIs(t, err, rpc.NotForwarded, "%v", role)
	}
	change(t, leader, revokeHost("web1"))
	_, err = forwardExecute(t, by, leader, clientCaller(web1), command)
	require.ErrorAs(t, err, &refused, "a revoked host")
}

func TestRootOfASquashedHostIsNobodyOnADetourToo(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	leader := leaderOf(t, nodes)
	follower := nodes[0]
	if follower == leader {
		follower = nodes[1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	joined, err := certrenew.Join(ctx, newToken(t, leader, &storepb.JoinToken{SquashRoot: true}), "guest", filepath.Join(t.TempDir(), "identity"), nil)
	require.NoError(t, err)
	guest, by := clientCaller(joined.Credentials), forwarder(t, follower.security.credentials)
	for _, cmd := range []*storepb.Command{
		{Session: 7, Op: openSessionOf("guest")},
		{Session: 7, Seq: 1, Caller: &storepb.Caller{Host: follower.dir.Name}, Op: createOp("lock")},
	} {
		result, err := forwardExecute(t, by, leader, guest, cmd)
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode(), result.GetMessage())
	}
	result, err := leader.fsm.Query(&storepb.Query{Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: namespace.RootIno, Name: []byte("lock")}}})
	require.NoError(t, err)
	require.Equal(t, uint32(namespace.Nobody), result.GetAttr().GetUid())
}

// TestOnlyAVoterMayForward: nothing of what others claim to forward is done, and the callers are not
// blamed for it.
func TestOnlyAVoterMayForward(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	leader := leaderOf(t, nodes)
	web1, _ := join(t, leader, "web1")
	web2, _ := join(t, leader, "web2")
	cfg := secureConfig(t, "learner")
	cfg.Nonvoter = true
	enrollNode(t, leader, cfg)
	learner := startNode(t, cfg)
	open := &storepb.Command{Session: 100, Op: openSessionOf("web1")}
	for what, by := range map[string]*identity.Credentials{"a mount": web2, "the mount itself": web1, "a server without a vote": learner.security.credentials} {
		_, err := forwardExecute(t, forwarder(t, by), leader, clientCaller(web1), open)
		require.ErrorIs(t, err, rpc.NotForwarded, what)
	}
	gone := nodes[0]
	if gone == leader {
		gone = nodes[1]
	}
	by := forwarder(t, gone.security.credentials)
	_, err := forwardExecute(t, by, leader, clientCaller(web1), open)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	removed, err := rpc.Ask(ctx, rpc.NewRouter(leader.peers, leader), rpc.Node.Remove, &clusterpb.RemoveRequest{Name: gone.dir.Name})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, removed.GetResult().GetCode())
	_, err = forwardExecute(t, by, leader, clientCaller(web1), open)
	require.ErrorIs(t, err, rpc.NotForwarded, "a server that was removed")
}

// TestACallIsForwardedOnce: a server that gets a forwarded call and does not lead names the leader, and
// goes no further.
func TestACallIsForwardedOnce(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 3)
	leader := leaderOf(t, nodes)
	web1, _ := join(t, leader, "web1")
	var followers []*Node
	for _, node := range nodes {
		if node != leader {
			followers = append(followers, node)
		}
	}
	require.Eventually(t, func() bool { return followers[1].admits(clientCaller(web1)) == nil }, testWait, time.Millisecond)
	ctx := rpc.WithCaller(t.Context(), clientCaller(web1))
	reply, err := rpc.Forward(ctx, forwarder(t, followers[0].security.credentials), followers[1].cfg.Advertise, rpc.Node.Execute, statFs)
	require.NoError(t, err)
	require.Equal(t, clusterpb.Outcome_NOT_LEADER, reply.GetOutcome())
	require.Equal(t, leader.cfg.Advertise, reply.GetLeaderAddress())
	require.Zero(t, forwardedBy(followers[1]))
}

// TestADeadMemberIsNotOneThatCallsThroughAnotherServer: only the way between it and the leader is broken.
func TestADeadMemberIsNotOneThatCallsThroughAnotherServer(t *testing.T) {
	t.Parallel()
	c := startCutCluster(t, 3)
	leader := leaderOf(t, c.nodes)
	cut := c.others(leader)[0]
	client := openNodeClient(t, cut)
	c.setCut(cut, leader, true)
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	leader.failureDetector.mu.Lock()
	leader.failureDetector.removeAfter = 1
	require.True(t, leader.failureDetector.usesDetour(cut.dir.ID, readClocks().mono))
	leader.failureDetector.mu.Unlock()
	require.Empty(t, leader.failureDetector.record(readClocks().mono, map[string]bool{leader.dir.ID: true, cut.dir.ID: false}))
	require.Equal(t, cut.dir.ID, leader.failureDetector.record(readClocks().mono+2*forwardedCallTTL, map[string]bool{leader.dir.ID: true, cut.dir.ID: false}))
}

// TestADetourIsDoneByItsOwnClusterOnly: another cluster may have taken over the address of a server.
func TestADetourIsDoneByItsOwnClusterOnly(t *testing.T) {
	t.Parallel()
	nodes := startSecureNodes(t, 2)
	leader := leaderOf(t, nodes)
	other := nodes[0]
	if other == leader {
		other = nodes[1]
	}
	security := certrenew.ForMount(other.security.credentials, quietLogger()).Security()
	ctx := rpc.WithCaller(t.Context(), rpc.Caller{Role: rpc.RoleServer, Host: other.dir.Name, Key: identity.KeyHashOf(other.security.credentials.Leaf())})
	for cluster, want := range map[string]error{leader.dir.ClusterID(): nil, "another": rpc.NotForwarded} {
		by := rpc.NewForwarder(security, func() string { return cluster })
		defer by.Close()
		_, err := rpc.Forward(ctx, by, leader.cfg.Advertise, rpc.Node.Execute, statFs)
		require.ErrorIs(t, err, want, cluster)
		_, err = rpc.Forward(ctx, by, leader.cfg.Advertise, rpc.Node.Lease, &clusterpb.LeaseRequest{Session: 1, Release: true})
		require.ErrorIs(t, err, want, cluster)
	}
}

// TestWhatOnlyTheLeaderDoesIsForwarded goes through all methods whose replies may name another leader.
func TestWhatOnlyTheLeaderDoesIsForwarded(t *testing.T) {
	t.Parallel()
	c := startCutCluster(t, 3)
	leader := leaderOf(t, c.nodes)
	others := c.others(leader)
	security := certrenew.ForMount(others[0].security.credentials, quietLogger()).Security()
	network := newCutNetwork()
	network.set(leader.cfg.Advertise, true)
	security.Network = network
	peers := rpc.NewPeers(security)
	defer peers.Close()
	router := rpc.NewRouter(peers, peers.Nodes([]string{leader.cfg.Advertise, others[0].cfg.Advertise, others[1].cfg.Advertise})...)
	_, err := rpc.Ask(t.Context(), router, rpc.Node.Execute, statFs)
	require.NoError(t, err)
	forwarded := func() int { return forwardedBy(others[0]) + forwardedBy(others[1]) }
	require.NotZero(t, forwarded())

	methods := clusterpb.File_cluster_clusterpb_cluster_proto.Services().ByName("Node").Methods()
	count := 0
	for i := range methods.Len() {
		name := string(methods.Get(i).Name())
		request, err := newMessage(methods.Get(i).Input())
		require.NoError(t, err)
		reply, err := newMessage(methods.Get(i).Output())
		require.NoError(t, err)
		if _, ofLeader := reply.(rpc.Answer); !ofLeader {
			continue
		}
		switch name { // where any server refuses an empty request
		case "ProveServer": // only of the server that is to prove itself
			continue
		case "Join":
			request = &clusterpb.JoinRequest{Member: others[0].members.own(), Cluster: leader.dir.ClusterID(), Again: true}
		case "Change":
			request = setRule("x/*")
		case "Enroll": // a stranger does not hear of the leader
			credentials := others[0].security.credentials
			der, err := credentials.Key().Request(credentials.Name())
			require.NoError(t, err)
			request = &clusterpb.EnrollRequest{Host: credentials.Name().Host, Request: der}
		}
		count++
		before := forwarded()
		ctx, cancel := context.WithTimeout(t.Context(), rpc.AttemptTimeout)
		_, _ = rpc.Ask(ctx, router, func(to rpc.Node, ctx context.Context, request proto.Message) (rpc.Answer, error) {
			results := reflect.ValueOf(to).MethodByName(name).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
			err, _ := results[1].Interface().(error)
			return results[0].Interface().(rpc.Answer), err
		}, request)
		cancel()
		require.Greater(t, forwarded(), before, name)
	}
	require.Greater(t, count, 8)
}
