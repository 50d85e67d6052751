package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// transport is raft's network transport without the heartbeat fast path (hashicorp/raft#695). It sends
// only commit indexes allowed by parallelLog, and nothing after a step-down. It dials learned addresses,
// and rejects replies of other servers: addresses change, and one vote or copy must not count twice.
type transport struct {
	network
	self      raft.ServerID
	instance  ids.Instance // of this process
	addresses *LearnedAddresses
	instances Instances // nil: every process counts
	log       *parallelLog
	stepDown  *StepDown
	space     *diskReserve
	gate      *appendGate
}

// Reasons why a node sends nothing.
var (
	errSteppedDown = errors.New("this node is to be silent")
	errFull        = errors.New("the disk of this node is full")
)

// maySend returns an error if nothing may be sent. A leader with a full disk sends nothing, so it loses
// leadership within a lease, whatever is only in its memory, and another one can be elected.
func (t transport) maySend() error {
	if t.stepDown.Begun() {
		return errSteppedDown
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

// Consumer is part of raft.Transport.
func (t transport) Consumer() <-chan raft.RPC { return t.gate.requests }

// Close is part of raft.WithClose.
func (t transport) Close() error {
	t.gate.close()
	return t.network.Close()
}

// EncodePeer is part of raft.Transport. It encodes a server's id and address, and this process:
// ID#INSTANCE@ADDRESS. A follower stores its vote as these bytes, and repeats the vote of a term without
// a look at the log. So only a request of the same process may have the same bytes: not a copy of the
// server, nor another server that took over the address. A process asks once in a term, because it stores
// a new term first.
func (t transport) EncodePeer(id raft.ServerID, address raft.ServerAddress) []byte {
	if id == t.self {
		id += raft.ServerID(instanceMark + strconv.FormatUint(uint64(t.instance), 16))
	}
	return []byte(string(id) + peerSeparator + string(address))
}

// Neither occurs in an id or an address.
const (
	peerSeparator = "@"
	instanceMark  = "#"
)

// DecodePeer is part of raft.Transport. It returns the address.
func (t transport) DecodePeer(peer []byte) raft.ServerAddress {
	address, _ := decodePeer(peer)
	return address
}

// decodePeer returns instance 0 for a peer without one.
func decodePeer(peer []byte) (address raft.ServerAddress, instance ids.Instance) {
	name, at, found := strings.Cut(string(peer), peerSeparator)
	if !found {
		return raft.ServerAddress(peer), 0
	}
	_, mark, _ := strings.Cut(name, instanceMark)
	number, err := strconv.ParseUint(mark, 16, 64)
	if err != nil {
		return raft.ServerAddress(at), 0
	}
	return raft.ServerAddress(at), ids.Instance(number)
}

// SetHeartbeatHandler does nothing, so that heartbeats arrive through the consumer like other messages.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntries is part of raft.Transport.
func (t transport) AppendEntries(
	id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	if err := t.prepare(req); err != nil {
		return err
	}
	return t.reach(id, to, resp, func(at raft.ServerAddress) error { return t.network.AppendEntries(id, at, req, resp) })
}

// AppendEntriesPipeline is part of raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	if err := t.maySend(); err != nil {
		return nil, err
	}
	at := t.addresses.Of(id, to)
	pipeline, err := t.network.AppendEntriesPipeline(id, at)
	if err != nil {
		t.addresses.forget(id, at)
		return nil, err
	}
	return newAppendPipeline(pipeline, t.prepare, func(answer raft.WithRPCHeader) error { return t.accept(id, at, answer) }), nil
}

// prepare limits a message to the data that may be sent.
func (t transport) prepare(req *raft.AppendEntriesRequest) error {
	if err := t.maySend(); err != nil {
		return err
	}
	limitBatch(req)
	req.LeaderCommitIndex = uint64(t.log.committed(ids.Index(req.LeaderCommitIndex)))
	return nil
}

// RequestPreVote is part of raft.WithPreVote.
func (t transport) RequestPreVote(
	id raft.ServerID, to raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if err := t.maySend(); err != nil {
		return err
	}
	return t.reach(id, to, resp, func(at raft.ServerAddress) error { return t.network.RequestPreVote(id, at, req, resp) })
}

// RequestVote is part of raft.Transport.
func (t transport) RequestVote(
	id raft.ServerID, to raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	if err := t.maySend(); err != nil {
		return err
	}
	return t.reach(id, to, resp, func(at raft.ServerAddress) error { return t.network.RequestVote(id, at, req, resp) })
}

// InstallSnapshot is part of raft.Transport. Its reply names no server, so this one is identified before:
// another server would go back to the snapshot. A follower does nothing else until the snapshot is
// complete, or ends.
func (t transport) InstallSnapshot(
	id raft.ServerID, to raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	at := t.addresses.Of(id, to)
	err := t.identify(id, at)
	if err == nil {
		err = t.network.InstallSnapshot(id, at, req, resp, untilStepDown{data, t})
	}
	if err != nil {
		t.addresses.forget(id, at)
	}
	return err
}

// TimeoutNow is part of raft.Transport. Its reply names no server; an election by another server does no
// harm.
func (t transport) TimeoutNow(id raft.ServerID, to raft.ServerAddress, req *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.network.TimeoutNow(id, t.addresses.Of(id, to), req, resp)
}

// reach calls a server at its learned or configured address. The reply has to be its own.
func (t transport) reach(id raft.ServerID, configured raft.ServerAddress, answer raft.WithRPCHeader, call func(raft.ServerAddress) error) error {
	at := t.addresses.Of(id, configured)
	if err := call(at); err != nil {
		t.addresses.forget(id, at)
		return err
	}
	return t.accept(id, at, answer)
}

// accept returns nil for a reply of the server itself, from the process that counts. Otherwise the
// learned address is dropped.
func (t transport) accept(id raft.ServerID, at raft.ServerAddress, answer raft.WithRPCHeader) error {
	err := ofServer(id, at, answer)
	if err == nil {
		err = t.follow(id, at, answer)
	}
	if err != nil {
		t.addresses.forget(id, at)
	}
	return err
}

func (t transport) follow(id raft.ServerID, at raft.ServerAddress, answer raft.WithRPCHeader) error {
	_, instance := decodePeer(answer.GetRPCHeader().Addr)
	if t.instances == nil || t.instances.Follows(id, instance) {
		return nil
	}
	return t.instances.Follow(id, at, instance)
}

// identify returns nil if the server itself answers at an address. It asks for a pre-vote in term 0,
// which raft never does (appendGate.identify).
func (t transport) identify(id raft.ServerID, at raft.ServerAddress) error {
	if err := t.maySend(); err != nil {
		return err
	}
	request := &raft.RequestPreVoteRequest{RPCHeader: t.header()}
	reply := new(raft.RequestPreVoteResponse)
	if err := t.network.RequestPreVote(id, at, request, reply); err != nil {
		return fmt.Errorf("its address %s does not answer: %w", at, err)
	}
	if err := ofServer(id, at, reply); err != nil {
		return err
	}
	return t.follow(id, at, reply)
}

// header returns the header of this server's messages.
func (t transport) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(t.self), Addr: t.EncodePeer(t.self, t.LocalAddr())}
}

// ofServer returns nil for a reply of the server itself.
func ofServer(id raft.ServerID, at raft.ServerAddress, answer raft.WithRPCHeader) error {
	if by := answer.GetRPCHeader().ID; string(by) != string(id) {
		return fmt.Errorf("at its address %s answers %q", at, by)
	}
	return nil
}

// untilStepDown returns an error once this node may send nothing.
type untilStepDown struct {
	io.Reader
	transport transport
}

func (r untilStepDown) Read(b []byte) (int, error) {
	if err := r.transport.maySend(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

const (
	transportPool    = 4
	transportTimeout = 5 * time.Second
)

// aloneAddress is the address of a node without network.
const aloneAddress = "local"

func newTransport(cfg *Config, dir *Directory, files *storage) raft.Transport {
	if cfg.Network == nil {
		_, local := raft.NewInmemTransport(aloneAddress)
		return local
	}
	over := raft.NewNetworkTransportWithLogger(cfg.Network, transportPool, transportTimeout, raftLogger(cfg.Logger, slog.LevelDebug))
	fail := func(err error) {
		cfg.StepDown.Begin()
		cfg.Fail(err)
	}
	incoming := newAppendGate(over.Consumer(), files.logs, files.snapshots.last, fail)
	incoming.instances = cfg.Instances
	t := transport{
		over, raft.ServerID(dir.ID), dir.Instance(), cfg.Addresses, cfg.Instances, files.logs, cfg.StepDown, files.space, incoming,
	}
	incoming.header = t.header()
	return t
}

// maxBatch is how many bytes of entries a leader sends at once, unless a single entry has more. Raft
// limits only their number to 64, which may be 16 MiB: too much for a slow link, and for the memory of
// both sides.
const maxBatch = 2 << 20

// limitBatch removes excess entries from a request. Raft continues after its last entry.
func limitBatch(req *raft.AppendEntriesRequest) {
	bytes := uint64(0)
	for i, entry := range req.Entries {
		if bytes += entrySize(entry); bytes > maxBatch && i > 0 {
			req.Entries = req.Entries[:i:i]
			return
		}
	}
}
