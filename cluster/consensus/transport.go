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
}

var errSilent = errors.New("this node is to be silent")

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
	if t.silence.Begun() {
		return errSilent
	}
	shorten(req)
	req.LeaderCommitIndex = uint64(t.log.committed(ids.Index(req.LeaderCommitIndex)))
	return t.network.AppendEntries(id, to, req, resp)
}

// AppendEntriesPipeline is part of raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	if t.silence.Begun() {
		return nil, errSilent
	}
	pipeline, err := t.network.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return appendPipeline{pipeline, t.log, t.silence}, nil
}

type appendPipeline struct {
	raft.AppendPipeline
	log     *earlyLog
	silence *Withdrawal
}

// AppendEntries is part of raft.AppendPipeline.
func (p appendPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.silence.Begun() {
		return nil, errSilent
	}
	shorten(req)
	req.LeaderCommitIndex = uint64(p.log.committed(ids.Index(req.LeaderCommitIndex)))
	return p.AppendPipeline.AppendEntries(req, resp)
}

// RequestPreVote is part of raft.WithPreVote.
func (t transport) RequestPreVote(
	id raft.ServerID, to raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if t.silence.Begun() {
		return errSilent
	}
	return t.network.RequestPreVote(id, to, req, resp)
}

// RequestVote is part of raft.Transport.
func (t transport) RequestVote(
	id raft.ServerID, to raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	if t.silence.Begun() {
		return errSilent
	}
	return t.network.RequestVote(id, to, req, resp)
}

// InstallSnapshot is part of raft.Transport. A follower does nothing else until it has all of a snapshot, or no more comes.
func (t transport) InstallSnapshot(
	id raft.ServerID, to raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	return t.network.InstallSnapshot(id, to, req, resp, untilSilent{data, t.silence})
}

// untilSilent ends with an error once this node is to be silent.
type untilSilent struct {
	io.Reader
	silence *Withdrawal
}

func (r untilSilent) Read(b []byte) (int, error) {
	if r.silence.Begun() {
		return 0, errSilent
	}
	return r.Reader.Read(b)
}

const (
	transportPool    = 4
	transportTimeout = 5 * time.Second
)

// aloneAddress is that of a node without network.
const aloneAddress = "local"

func newTransport(stream raft.StreamLayer, log *earlyLog, silence *Withdrawal, logger *slog.Logger) raft.Transport {
	if stream == nil {
		_, local := raft.NewInmemTransport(aloneAddress)
		return local
	}
	over := raft.NewNetworkTransportWithLogger(stream, transportPool, transportTimeout, raftLogger(logger, slog.LevelDebug))
	return transport{over, log, silence}
}
