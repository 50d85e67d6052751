package cluster

import (
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"log/slog"
)

// transport is raft's TCP transport without the heartbeat fast path (hashicorp/raft#695). It tells followers only what
// earlyLog lets it.
type transport struct {
	network
	log *earlyLog
}

type network interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// SetHeartbeatHandler does nothing, so heartbeats come through the consumer like all else.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntries is part of raft.Transport.
func (t transport) AppendEntries(
	id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	req.LeaderCommitIndex = t.log.committed(req.LeaderCommitIndex)
	return t.network.AppendEntries(id, to, req, resp)
}

// AppendEntriesPipeline is part of raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	pipeline, err := t.network.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return appendPipeline{pipeline, t.log}, nil
}

type appendPipeline struct {
	raft.AppendPipeline
	log *earlyLog
}

// AppendEntries is part of raft.AppendPipeline.
func (p appendPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	req.LeaderCommitIndex = p.log.committed(req.LeaderCommitIndex)
	return p.AppendPipeline.AppendEntries(req, resp)
}

const (
	transportPool    = 4
	transportTimeout = 5 * time.Second
)

func newTransport(address string, log *earlyLog, logger *slog.Logger) (raft.Transport, error) {
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
	return transport{tcp, log}, nil
}
