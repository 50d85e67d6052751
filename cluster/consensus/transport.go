package consensus

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// transport is raft's network transport without the heartbeat fast path (hashicorp/raft#695). It tells followers only what
// earlyLog lets it, and says nothing to anybody once it is to be silent.
type transport struct {
	network
	log     *earlyLog
	silence *Withdrawal
	space   *space
}

// Why a node does not speak for the cluster.
var (
	errSilent = errors.New("this node is to be silent")
	errFull   = errors.New("the disk of this node is full")
)

// maySpeak is nil unless nothing may be said to others. A leader whose disk is full says nothing as such, and so it leads no more
// within a lease, and another one can be elected, whatever is only in its memory.
func (t transport) maySpeak() error {
	if t.silence.Begun() {
		return errSilent
	}
	if t.space.isFull() {
		return errFull
	}
	return nil
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
	if err := t.maySpeak(); err != nil {
		return err
	}
	shorten(req)
	req.LeaderCommitIndex = uint64(t.log.committed(ids.Index(req.LeaderCommitIndex)))
	return t.network.AppendEntries(id, to, req, resp)
}

// AppendEntriesPipeline is part of raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	if err := t.maySpeak(); err != nil {
		return nil, err
	}
	pipeline, err := t.network.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return appendPipeline{pipeline, t}, nil
}

type appendPipeline struct {
	raft.AppendPipeline
	transport transport
}

// AppendEntries is part of raft.AppendPipeline.
func (p appendPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.transport.maySpeak(); err != nil {
		return nil, err
	}
	shorten(req)
	req.LeaderCommitIndex = uint64(p.transport.log.committed(ids.Index(req.LeaderCommitIndex)))
	return p.AppendPipeline.AppendEntries(req, resp)
}

// RequestPreVote is part of raft.WithPreVote.
func (t transport) RequestPreVote(
	id raft.ServerID, to raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if err := t.maySpeak(); err != nil {
		return err
	}
	return t.network.RequestPreVote(id, to, req, resp)
}

// RequestVote is part of raft.Transport.
func (t transport) RequestVote(
	id raft.ServerID, to raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	if err := t.maySpeak(); err != nil {
		return err
	}
	return t.network.RequestVote(id, to, req, resp)
}

// InstallSnapshot is part of raft.Transport. A follower does nothing else until it has all of a snapshot, or no more comes.
func (t transport) InstallSnapshot(
	id raft.ServerID, to raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	return t.network.InstallSnapshot(id, to, req, resp, untilSilent{data, t})
}

// untilSilent ends with an error once this node may not speak.
type untilSilent struct {
	io.Reader
	transport transport
}

func (r untilSilent) Read(b []byte) (int, error) {
	if err := r.transport.maySpeak(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

const (
	transportPool    = 4
	transportTimeout = 5 * time.Second
)

// aloneAddress is that of a node without network.
const aloneAddress = "local"

func newTransport(stream raft.StreamLayer, files *storage, silence *Withdrawal, logger *slog.Logger) raft.Transport {
	if stream == nil {
		_, local := raft.NewInmemTransport(aloneAddress)
		return local
	}
	over := raft.NewNetworkTransportWithLogger(stream, transportPool, transportTimeout, raftLogger(logger, slog.LevelDebug))
	return transport{over, files.logs, silence, files.space}
}
