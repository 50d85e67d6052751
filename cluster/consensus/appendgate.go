package consensus

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// position is the index and term of an entry.
type position struct {
	index ids.Index
	term  ids.Term
}

func positionOf(entry *raft.Log) position {
	return position{ids.Index(entry.Index), ids.Term(entry.Term)}
}

// appendGate filters the requests of other nodes to raft, one after the other.
//
// Raft compares the beginning of a message only with its log. It would refuse messages that begin before
// the log, even if a snapshot covers them, and the leader would send older and older entries. So the gate
// removes covered entries (skipCovered). And raft empties its log when it installs a snapshot, including
// later entries counted by others, and continues to count them itself. install handles both.
//
// Requests of a process that does not count as its server (Instances) get an error. An unknown process is
// checked in the background.
type appendGate struct {
	header    raft.RPCHeader // of this server's replies
	from      <-chan raft.RPC
	checked   chan raft.RPC // of processes that were unknown at first
	requests  chan raft.RPC
	raft      *raft.Raft
	log       raft.LogStore
	newest    func() position // last entry of the newest snapshot
	instances Instances       // nil: every process counts
	fail      func(error)
	closed    chan struct{}
	closing   sync.Once
}

func newAppendGate(from <-chan raft.RPC, log raft.LogStore, newest func() position, fail func(error)) *appendGate {
	return &appendGate{
		from: from, checked: make(chan raft.RPC), requests: make(chan raft.RPC), log: log, newest: newest, fail: fail, closed: make(chan struct{}),
	}
}

// start forwards requests to raft until close.
func (g *appendGate) start(r *raft.Raft) {
	g.raft = r
	go g.pass()
}

func (g *appendGate) close() { g.closing.Do(func() { close(g.closed) }) }

func (g *appendGate) pass() {
	for {
		select {
		case rpc := <-g.from:
			if g.follows(rpc) && !g.handle(rpc) {
				return
			}
		case rpc := <-g.checked:
			if !g.handle(rpc) {
				return
			}
		case <-g.closed:
			return
		}
	}
}

// identify answers a server that asks only for this server's id (transport.identify). Raft would log each
// request as a rejected pre-vote.
func (g *appendGate) identify(rpc raft.RPC) {
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: g.header, Term: g.raft.CurrentTerm()}, nil)
}

// follows reports whether the sender of a request counts. An unknown process is checked meanwhile.
func (g *appendGate) follows(rpc raft.RPC) bool {
	req, ok := rpc.Command.(raft.WithRPCHeader)
	if g.instances == nil || !ok {
		return true
	}
	if ask, ok := req.(*raft.RequestPreVoteRequest); ok && ask.Term == 0 {
		return true // it changes nothing, and the reply names this process
	}
	id := raft.ServerID(req.GetRPCHeader().ID)
	at, instance := decodePeer(req.GetRPCHeader().Addr)
	if g.instances.Follows(id, instance) {
		return true
	}
	go func() {
		if err := g.instances.Follow(id, at, instance); err != nil {
			if rpc.Reader != nil { // the connection continues after it
				_, _ = io.Copy(io.Discard, rpc.Reader)
			}
			rpc.Respond(nil, err)
			return
		}
		select {
		case g.checked <- rpc:
		case <-g.closed:
		}
	}()
	return false
}

// handle returns false if no more requests are to be handled.
func (g *appendGate) handle(rpc raft.RPC) bool {
	switch req := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		rpc.Command = g.skipSnapshotted(commitCompared(req))
		g.forward(rpc)
	case *raft.InstallSnapshotRequest:
		return g.install(rpc, req)
	case *raft.RequestPreVoteRequest:
		if req.Term == 0 {
			g.identify(rpc)
		} else {
			g.forward(rpc)
		}
	default:
		g.forward(rpc)
	}
	return true
}

// forward returns once raft has taken a request, or has ended.
func (g *appendGate) forward(rpc raft.RPC) {
	select {
	case g.requests <- rpc:
	case <-g.closed:
	}
}

// install forwards nothing else until raft is done with a snapshot, because later requests depend on it.
// It returns false if no more requests are to be handled.
//
// A snapshot that is covered already is not installed: a leader may not know that, or it arrives late. A
// success reply commits nothing new, and the leader's next entries are compared. Raft itself refuses a
// leader of an old term.
func (g *appendGate) install(rpc raft.RPC, req *raft.InstallSnapshotRequest) bool {
	last := position{ids.Index(req.LastLogIndex), ids.Term(req.LastLogTerm)}
	if req.Term >= g.raft.CurrentTerm() && (last.index <= ids.Index(g.raft.AppliedIndex()) || g.has(last)) {
		go func() {
			_, err := io.Copy(io.Discard, rpc.Reader)
			header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
			rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: header, Term: g.raft.CurrentTerm(), Success: err == nil}, err)
		}()
		return true
	}
	answers := make(chan raft.RPCResponse, 1)
	to := rpc.RespChan
	rpc.RespChan = answers
	g.forward(rpc)
	select {
	case answer := <-answers:
		if said, ok := answer.Response.(*raft.InstallSnapshotResponse); ok && said.Success && answer.Error == nil && g.countsRemoved(last) {
			g.fail(errStaleLog)
			return false
		}
		to <- answer
		return true
	case <-g.closed:
		return false
	}
}

// has reports whether an entry is in the log.
func (g *appendGate) has(at position) bool {
	var entry raft.Log
	return g.log.GetLog(uint64(at.index), &entry) == nil && positionOf(&entry) == at
}

// errStaleLog asks for a restart of the process, which does no harm.
var errStaleLog = errors.New("the log had other entries than the leader's snapshot, and raft counts them though they are gone: start again")

// countsRemoved reports whether raft still counts entries that it removed when it installed a snapshot.
// The leader's entries could not follow them, and raft would vote as if it had them.
func (g *appendGate) countsRemoved(installed position) bool {
	stats := g.raft.Stats()
	index, errIndex := strconv.ParseUint(stats["last_log_index"], 10, 64)
	term, errTerm := strconv.ParseUint(stats["last_log_term"], 10, 64)
	last := position{ids.Index(index), ids.Term(term)}
	return errors.Join(errIndex, errTerm) != nil || last.index > installed.index || last.index == installed.index && last.term != installed.term
}

// commitCompared limits the commit index of a leader's message to the entries compared by it: its last
// entry, or the one before it. Raft would commit its whole log up to the leader's index (raft.go, "Update
// the commit index"), including entries unknown to the leader.
func commitCompared(req *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	compared := req.PrevLogEntry
	if n := len(req.Entries); n > 0 {
		compared = req.Entries[n-1].Index
	}
	if req.LeaderCommitIndex <= compared {
		return req
	}
	limited := *req
	limited.LeaderCommitIndex = compared
	return &limited
}

// skipSnapshotted removes entries covered by the snapshot from a message that begins before the log. A
// received snapshot counts once raft has applied it.
func (g *appendGate) skipSnapshotted(req *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	snapshot, previous := g.newest(), ids.Index(req.PrevLogEntry)
	if previous > snapshot.index || snapshot.index == 0 || ids.Index(g.raft.AppliedIndex()) < snapshot.index {
		return req
	}
	first, err := g.log.FirstIndex()
	isBehind := first == 0 || ids.Index(first) == snapshot.index+1
	if err != nil || first != 0 && previous >= ids.Index(first) || !isBehind && !g.has(snapshot) {
		return req
	}
	return skipCovered(req, snapshot)
}

// skipCovered rewrites a leader's message to begin after a snapshot, if it begins before the snapshot's
// end.
//
// Entries in a snapshot are committed, so each leader has them; raft refuses messages of older terms. (A
// state given to raft's Restore would be different; nothing does that.) The commit index is as before
// (commitCompared).
func skipCovered(req *raft.AppendEntriesRequest, snapshot position) *raft.AppendEntriesRequest {
	covered := slices.IndexFunc(req.Entries, func(entry *raft.Log) bool { return ids.Index(entry.Index) > snapshot.index })
	if covered < 0 {
		covered = len(req.Entries)
	}
	last := position{ids.Index(req.PrevLogEntry), ids.Term(req.PrevLogTerm)}
	if covered > 0 {
		last = positionOf(req.Entries[covered-1])
	}
	endsBefore := covered == len(req.Entries) && covered > 0 && last.index < snapshot.index
	if last != snapshot && !endsBefore {
		return req
	}
	skipped := *req
	skipped.Entries = req.Entries[covered:]
	skipped.PrevLogEntry, skipped.PrevLogTerm = 0, 0
	return &skipped
}
