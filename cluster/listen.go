package cluster

import (
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"lockfs/cluster/rpc"
)

// openPort opens the port, without serving it yet, and returns raft's part; nil: a node without network.
func (n *Node) openPort() (raft.StreamLayer, error) {
	if n.cfg.Address == "" {
		return nil, nil
	}
	var err error
	n.port, err = rpc.Listen(n.cfg.Address, n.connections(), rpc.PortReport{
		Crowded: n.crowded, Failed: n.handshakeFailed, Malformed: n.cfg.Metrics.malformed.Inc,
	})
	if err != nil {
		return nil, err
	}
	return &raftStream{
		Listener: n.port.Raft(), advertised: advertised(n.cfg.Advertise), security: n.connections(), cluster: n.dir.ClusterID, instances: n.instances, logger: n.logger,
	}, nil
}

// serve answers other nodes, mounts and commands.
func (n *Node) serve() {
	refusalLog := newRefusalLog(n.logger, n.cfg.Metrics.refused)
	forwards := &forwarding{
		LeaseKeeper: n, to: n.forwarder, peers: n.peers, members: n.members, leadership: n.leadership, forwarded: n.cfg.Metrics.forwarded.Inc,
	}
	outside := &authorizer{node: forwards, grant: grantedPermission, onRefusal: refusalLog.note}
	n.server = rpc.NewServer(outside, n.cfg.Metrics.malformed.Inc, n.crowded)
	n.server.AcceptForwarded(n.authorizeForwarded)
	n.joinServer = rpc.NewJoinServer(outside, n.cfg.Metrics.malformed.Inc, n.crowded)
	if n.port == nil {
		return
	}
	n.cfg.Metrics.AddBudgets(slices.Concat(n.server.Budgets(), n.joinServer.Budgets())...)
	if n.cfg.insecure() {
		n.logger.Warn("insecure: every host that reaches the port has all permissions", "address", n.cfg.Address)
		n.cfg.Metrics.insecure.Set(1)
	}
	go func() { _ = n.server.Serve(n.port.RPC()) }() // ends with the port, like the next one
	go func() { _ = n.joinServer.Serve(n.port.Join()) }()
	if n.security != nil {
		go n.watchRevocations()
		go n.security.keeper.Run(n.ctx)
	}
	go func() {
		if err := n.port.Serve(); n.ctx.Err() == nil && !n.stepDown.Begun() {
			n.fail(fmt.Errorf("serve %s: %w", n.cfg.Address, err))
		}
	}()
}

// SocketServer answers on unix sockets of this host. The caller closes it.
func (n *Node) SocketServer() *rpc.Server {
	return n.Proxy().Server()
}

// stopServing closes all connections of others to this node.
func (n *Node) stopServing() {
	n.server.Close()
	n.joinServer.Close()
	if n.port != nil {
		_ = n.port.Close()
	}
}

// crowded counts a connection refused for lack of room.
func (n *Node) crowded(caller rpc.Caller) {
	n.cfg.Metrics.crowded.Inc()
	n.connectionRefusals.crowded.Do(func() { n.logger.Warn("too many connections: some are refused", "from", caller.String()) })
}

// handshakeFailed counts a failed handshake, and logs it once for each address.
func (n *Node) handshakeFailed(caller rpc.Caller, err error) {
	n.cfg.Metrics.handshakes.Inc()
	address := caller.Address.String()
	n.connectionRefusals.mu.Lock()
	defer n.connectionRefusals.mu.Unlock()
	if n.connectionRefusals.failed[address] || len(n.connectionRefusals.failed) >= maxAddressesLogged {
		return
	}
	if n.connectionRefusals.failed == nil {
		n.connectionRefusals.failed = make(map[string]bool)
	}
	n.connectionRefusals.failed[address] = true
	n.logger.Warn("a connection is refused", "from", address, "error", err)
}
