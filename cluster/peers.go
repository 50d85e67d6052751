package cluster

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"lockfs/cluster/clusterpb"
)

// A host that comes back is to be found soon, and one that is cut off noticed soon.
const (
	connectTimeout = time.Second
	reconnectDelay = 500 * time.Millisecond // at most
	keepaliveEvery = 10 * time.Second
)

// peers keeps one connection to each node that is talked to.
type peers struct {
	mu    sync.Mutex
	known map[string]peer
}

type peer struct {
	clusterpb.NodeClient
	conn *grpc.ClientConn
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
	p.known[address] = peer{clusterpb.NewNodeClient(conn), conn}
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
	}
	p.known = make(map[string]peer)
}
