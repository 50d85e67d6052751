package cluster

import (
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"log/slog"
)

// transport is raft's TCP transport without the heartbeat fast path (hashicorp/raft#695).
type transport struct{ *raft.NetworkTransport }

var (
	_ raft.Transport   = transport{}
	_ raft.WithPreVote = transport{}
	_ raft.WithClose   = transport{}
)

// SetHeartbeatHandler does nothing, so heartbeats come through the consumer like all else.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}

const (
	transportPool    = 4
	transportTimeout = 5 * time.Second
)

func newTransport(address string, logger *slog.Logger) (raft.Transport, error) {
	if address == "" {
		_, local := raft.NewInmemTransport("local")
		return local, nil
	}
	advertise, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("raft address %q: %w", address, err)
	}
	tcp, err := raft.NewTCPTransportWithLogger(address, advertise, transportPool, transportTimeout, raftLogger(logger, slog.LevelDebug))
	if err != nil {
		return nil, fmt.Errorf("listen for raft on %s: %w", address, err)
	}
	return transport{tcp}, nil
}
