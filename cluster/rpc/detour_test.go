package rpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/budget"
)

// leadingNode does what it is asked if it leads, and names the leader or forwards to it if not.
type leadingNode struct {
	Node
	leader    atomic.Pointer[string] // address; empty: itself
	to        *Forwarder
	does      atomic.Int64
	forwards  atomic.Int64
	callers   sync.Map // of what it did: true
	lastLimit atomic.Int64
}

func (n *leadingNode) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	leader := *n.leader.Load()
	switch {
	case leader == "":
		n.does.Add(1)
		n.callers.Store(CallerOf(ctx).Forwarder != "", true)
		deadline, _ := ctx.Deadline()
		n.lastLimit.Store(int64(time.Until(deadline)))
		return new(clusterpb.ExecuteReply), nil
	case Unreachable(ctx) == leader:
		n.forwards.Add(1)
		return Forward(ctx, n.to, leader, Node.Execute, req)
	}
	return &clusterpb.ExecuteReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
}

func (n *leadingNode) Probe(context.Context, *clusterpb.ProbeRequest) (*clusterpb.ProbeReply, error) {
	return new(clusterpb.ProbeReply), nil
}

// startLeading serves a node, which forwards over the network.
func startLeading(t testing.TB, leader string) (node *leadingNode, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	node = &leadingNode{to: NewForwarder(nil, func() string { return "" })}
	node.leader.Store(&leader)
	server := NewServer(node, func() {}, func(Caller) {})
	server.AcceptForwarded(func(by, caller Caller) error { return nil })
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		server.Close()
		node.to.Close()
	})
	return node, listener.Addr().String()
}

// brokenWay is TCP, with addresses that do not answer.
type brokenWay struct{ broken sync.Map }

func (n *brokenWay) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

func (n *brokenWay) Dial(ctx context.Context, address string) (net.Conn, error) {
	if _, broken := n.broken.Load(address); broken {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// TestARouterGoesAroundABrokenLink: calls go through a server that reaches the leader, while one that
// does not is passed over, and take the direct way again once the link is whole.
func TestARouterGoesAroundABrokenLink(t *testing.T) {
	leader, leads := startLeading(t, "")
	lost, helpless := startLeading(t, leads)
	helper, helps := startLeading(t, leads)
	lostWay := new(brokenWay)
	lostWay.broken.Store(leads, true)
	lost.to.Close()
	lost.to = NewForwarder(&Security{Network: lostWay}, func() string { return "" })

	way := new(brokenWay)
	way.broken.Store(leads, true)
	peers := NewPeers(&Security{Network: way})
	defer peers.Close()
	r := NewRouter(peers, peers.Nodes([]string{leads, helpless, helps})...)
	ask := func() time.Duration {
		began := time.Now()
		_, err := Ask(t.Context(), r, Node.Execute, new(clusterpb.ExecuteRequest))
		require.NoError(t, err)
		return time.Since(began)
	}
	ask()
	for range 10 {
		require.Less(t, ask(), AttemptTimeout/2, "the detour is remembered")
	}
	require.Equal(t, int64(11), leader.does.Load())
	require.GreaterOrEqual(t, helper.forwards.Load(), int64(11))
	_, direct := leader.callers.Load(false)
	require.False(t, direct, "all came through another server")

	way.broken.Delete(leads)
	require.Eventually(t, func() bool {
		before := helper.forwards.Load() + lost.forwards.Load()
		ask()
		return helper.forwards.Load()+lost.forwards.Load() == before
	}, 20*time.Second, 10*time.Millisecond)

	way.broken.Store(leads, true)
	peers.Node(leads).(*Client).Close()
	require.Equal(t, "", *leader.leader.Load())
	next := leads
	leader.leader.Store(&helps)
	helper.leader.Store(new(string))
	lost.leader.Store(&helps)
	ask()
	require.Equal(t, int64(1), helper.does.Load(), "a server that would forward names the new leader in place of %s", next)
	require.Less(t, ask(), AttemptTimeout/2)
}

// TestAForwardedCallHasTheTimeOfItsCaller: a detour makes it no longer.
func TestAForwardedCallHasTheTimeOfItsCaller(t *testing.T) {
	leader, leads := startLeading(t, "")
	_, helps := startLeading(t, leads)
	via := NewClient(helps, nil)
	defer via.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := via.Execute(withDetour(ctx, &clusterpb.Detour{Unreachable: leads}), new(clusterpb.ExecuteRequest))
	require.NoError(t, err)
	require.LessOrEqual(t, time.Duration(leader.lastLimit.Load()), time.Second+time.Millisecond)
}

// TestDetoursThatAreRefused: a request that has two hops behind it, or before it, is none.
func TestDetoursThatAreRefused(t *testing.T) {
	_, leads := startLeading(t, "")
	remote := NewClient(leads, nil)
	defer remote.Close()
	send := func(kind byte, detour *clusterpb.Detour) error {
		message, err := proto.Marshal(detour)
		require.NoError(t, err)
		// A bytes field has the detour's own encoding if it is sent as it is.
		return remote.calls.Call(t.Context(), kind, rawMessage(t, message), new(clusterpb.ExecuteReply))
	}
	request, err := proto.Marshal(new(clusterpb.ExecuteRequest))
	require.NoError(t, err)
	origin := new(clusterpb.Origin)
	require.NoError(t, send(executeMethod|detourFlag, &clusterpb.Detour{Request: request, Origin: origin}))
	require.NoError(t, send(executeMethod|detourFlag, &clusterpb.Detour{Request: request, Unreachable: "a:1"}))
	for name, detour := range map[string]*clusterpb.Detour{
		"two hops":     {Request: request, Origin: origin, Unreachable: "a:1"},
		"none":         {Request: request},
		"no address":   {Request: request, Origin: &clusterpb.Origin{Address: "nowhere"}},
		"no key":       {Request: request, Origin: &clusterpb.Origin{Key: make([]byte, 33)}},
		"no such role": {Request: request, Origin: &clusterpb.Origin{Role: 9}},
		"no request":   {Request: []byte("\xff"), Origin: origin},
	} {
		require.ErrorIs(t, send(executeMethod|detourFlag, detour), Malformed, name)
	}
	require.ErrorIs(t, send(probeMethod|detourFlag, &clusterpb.Detour{Unreachable: "a:1"}), Malformed, "a voter's own answer is not forwarded")
}

// rawMessage encodes as some bytes.
func rawMessage(t testing.TB, data []byte) proto.Message {
	t.Helper()
	message := new(wrapperspb.StringValue)
	message.ProtoReflect().SetUnknown(data)
	return message
}

// TestOnlyAServerThatIsToldSoAcceptsForwardedRequests: a socket of a host does not.
func TestOnlyAServerThatIsToldSoAcceptsForwardedRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	node := new(leadingNode)
	node.leader.Store(new(string))
	server := NewSocketServer(node, func() {}, func(Caller) {})
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	defer func() { _ = listener.Close() }()
	f := NewForwarder(nil, func() string { return "" })
	defer f.Close()
	ctx := WithCaller(t.Context(), Caller{Role: RoleInsecure})
	_, err = Forward(ctx, f, listener.Addr().String(), Node.Execute, new(clusterpb.ExecuteRequest))
	require.ErrorIs(t, err, NotForwarded)
	require.Zero(t, node.does.Load())
}

// TestAHostTakesNoQuotaFromOthersOnADetour: what one host has forwarded leaves room for others.
func TestAHostTakesNoQuotaFromOthersOnADetour(t *testing.T) {
	f := NewForwarder(nil, func() string { return "" })
	defer f.Close()
	accounts, _ := f.quota.connect(Caller{Host: "greedy"}, budget.Replacing)
	for f.quota.tryAcquire(accounts.calls, callCost, false) {
	}
	require.Equal(t, forwardLimits.bytesPerHost, accounts.calls.used)
	_, leads := startLeading(t, "")
	as := func(host string) error {
		ctx, cancel := context.WithTimeout(WithCaller(t.Context(), Caller{Role: RoleInsecure, Host: host}), 5*time.Second)
		defer cancel()
		_, err := Forward(ctx, f, leads, Node.Execute, new(clusterpb.ExecuteRequest))
		return err
	}
	require.NoError(t, as("modest"))
	ended := make(chan error)
	go func() { ended <- as("greedy") }()
	f.quota.release(accounts.calls, accounts.calls.used)
	require.NoError(t, <-ended)
}
