package cluster

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/rpc"
)

var _ raft.StreamLayer = (*raftStream)(nil)

// raftStream carries raft's messages: those to this node come to its port, as everything does.
type raftStream struct {
	net.Listener
	advertised advertised
	security   *rpc.Security
}

// Dial is part of raft.StreamLayer.
func (s *raftStream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.security.Dial(ctx, string(address), rpc.ProtocolRaft)
}

// Addr is where the other voters find this one.
func (s *raftStream) Addr() net.Addr { return s.advertised }

// advertised is the address that others are told.
type advertised string

// Network is part of net.Addr.
func (advertised) Network() string { return "tcp" }

// String is part of net.Addr.
func (a advertised) String() string { return string(a) }
