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

// position is that of an entry: its index, and the term in which it was made.
type position struct {
	index ids.Index
	term  ids.Term
}

func positionOf(entry *raft.Log) position {
	return position{ids.Index(entry.Index), ids.Term(entry.Term)}
}

// appendGate is what other nodes ask of raft, one after the other.
//
// Raft compares what comes before a message with its log only. It would refuse all messages that begin before the log does, also where a
// snapshot has what they say, and the leader would send older and older entries. So what the snapshot has is taken out of them
// (skipCovered). And raft empties its log when it installs a snapshot, also of entries behind it that others count on, and goes on counting
// those that it had; both are seen to here (install).
//
// Requests of a process that does not count as its server (Instances) get an error. One that is not known yet is judged beside the others.
type appendGate struct {
	header    raft.RPCHeader // of this server's answers
	from      <-chan raft.RPC
	checked   chan raft.RPC // of processes that were not known at first
	requests  chan raft.RPC
	raft      *raft.Raft
	log       raft.LogStore
	newest    func() position // the last entry of the newest snapshot there is
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

// start passes on what has come, and what comes until the end, to a raft.
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

// identify answers a server that asks only which server is here (transport.identify). Raft would log each as a rejected pre-vote.
func (g *appendGate) identify(rpc raft.RPC) {
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: g.header, Term: g.raft.CurrentTerm()}, nil)
}

// follows reports whether a request is of a process that counts. One that this node does not know yet is judged meanwhile.
func (g *appendGate) follows(rpc raft.RPC) bool {
	req, ok := rpc.Command.(raft.WithRPCHeader)
	if g.instances == nil || !ok {
		return true
	}
	if ask, ok := req.(*raft.RequestPreVoteRequest); ok && ask.Term == 0 {
		return true // it changes nothing, and the answer says which process this is
	}
	id := raft.ServerID(req.GetRPCHeader().ID)
	at, instance := decodePeer(req.GetRPCHeader().Addr)
	if g.instances.Follows(id, instance) {
		return true
	}
	go func() {
		if err := g.instances.Follow(id, at, instance); err != nil {
			if rpc.Reader != nil { // the connection goes on behind it
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

// handle returns false if nothing more is to be answered.
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

// forward returns once raft has begun with a request, or has ended.
func (g *appendGate) forward(rpc raft.RPC) {
	select {
	case g.requests <- rpc:
	case <-g.closed:
	}
}

// install passes nothing else on before raft is done with a snapshot, as that decides what is to be taken out. The answer is false if
// nothing more is to be answered.
//
// A snapshot of which all is here already is not installed: a leader that has not heard of that may send it, or it comes late. To say so
// makes nothing committed that was not, and what the leader sends next is compared. A leader whose term is over raft refuses itself.
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

// has tells whether an entry is in the log.
func (g *appendGate) has(at position) bool {
	var entry raft.Log
	return g.log.GetLog(uint64(at.index), &entry) == nil && positionOf(&entry) == at
}

// errStaleLog is of a process that has to be started again, which does no harm.
var errStaleLog = errors.New("the log had other entries than the leader's snapshot, and raft counts them though they are gone: start again")

// countsRemoved tells whether raft takes entries for there that it has removed when it installed a snapshot: none of the leader's could follow,
// and it would vote as if it had them.
func (g *appendGate) countsRemoved(installed position) bool {
	stats := g.raft.Stats()
	index, errIndex := strconv.ParseUint(stats["last_log_index"], 10, 64)
	term, errTerm := strconv.ParseUint(stats["last_log_term"], 10, 64)
	last := position{ids.Index(index), ids.Term(term)}
	return errors.Join(errIndex, errTerm) != nil || last.index > installed.index || last.index == installed.index && last.term != installed.term
}

// commitCompared answers a leader's message that calls nothing committed but what it has been compared up to: its last entry, or the one
// before it. Raft would take all of its log for committed up to what the leader says (raft.go, "Update the commit index"), also entries
// behind the message which the leader does not have.
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

// skipSnapshotted answers a leader's message without what a snapshot has, if it begins before the log does. A snapshot that was received counts once
// raft has taken it over: until then not all of it is applied.
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

// skipCovered answers a leader's message as it would be if it began behind a snapshot, if it reaches that far back.
//
// What a snapshot has is committed, so whoever leads has it too: raft refuses messages of a term that is over. (A state that is given to
// raft by its Restore would not be; nobody does that.) What raft calls committed then is what it would (commitCompared).
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
