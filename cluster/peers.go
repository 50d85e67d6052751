package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// A host that comes back is to be found soon, and one that is cut off noticed soon.
const (
	connectTimeout = time.Second
	reconnectDelay = 500 * time.Millisecond // at most
	keepaliveEvery = 10 * time.Second
)

// window is how many bytes may be under way. That it is fixed saves gRPC from measuring, with a ping for each call.
const window = 1 << 20

// peers keeps one connection to each node that is talked to.
type peers struct {
	mu    sync.Mutex
	known map[string]peer
}

// peer calls with gRPC, and over a line what programs wait for with every system call.
type peer struct {
	clusterpb.NodeClient
	conn *grpc.ClientConn
	line *rpc.Client
}

// What goes over a line.
const (
	executeMethod byte = iota
	probeMethod
)

func (p peer) Execute(ctx context.Context, req *clusterpb.ExecuteRequest, _ ...grpc.CallOption) (*clusterpb.ExecuteReply, error) {
	reply := new(clusterpb.ExecuteReply)
	return reply, p.line.Call(ctx, executeMethod, req, reply)
}

func (p peer) Probe(ctx context.Context, req *clusterpb.ProbeRequest, _ ...grpc.CallOption) (*clusterpb.ProbeReply, error) {
	reply := new(clusterpb.ProbeReply)
	return reply, p.line.Call(ctx, probeMethod, req, reply)
}

func newPeers() *peers { return &peers{known: make(map[string]peer)} }

// node answers a client of the node with this API address. It does not wait for a connection.
func (p *peers) node(address string) (clusterpb.NodeClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, found := p.known[address]; found {
		return known, nil
	}
	conn, err := dial(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	p.known[address] = peer{clusterpb.NewNodeClient(conn), conn, rpc.NewClient(address, connectTimeout)}
	return p.known[address], nil
}

// all answers a client for each address.
func (p *peers) all(addresses []string) ([]clusterpb.NodeClient, error) {
	nodes := make([]clusterpb.NodeClient, len(addresses))
	for i, address := range addresses {
		var err error
		if nodes[i], err = p.node(address); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func dial(address string) (*grpc.ClientConn, error) {
	delay := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectDelay}
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delay, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveEvery, Timeout: connectTimeout, PermitWithoutStream: true,
		}),
	)
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.known {
		_ = known.conn.Close()
		known.line.Close()
	}
	p.known = make(map[string]peer)
}
