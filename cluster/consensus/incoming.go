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

// incoming is what other nodes ask of raft, one after the other.
//
// Raft compares what comes before a message with its log only. It would refuse all messages that begin before the log does, also where a
// snapshot has what they say, and the leader would send older and older entries. So what the snapshot has is taken out of them
// (skipCovered). And raft empties its log when it installs a snapshot, also of entries behind it that others count on, and goes on counting
// those that it had; both are seen to here (install).
//
// Requests of a process that does not count as its server (Instances) get an error. One that is not known yet is judged beside the others.
type incoming struct {
	header    raft.RPCHeader // of this server's answers
	from      <-chan raft.RPC
	judged    chan raft.RPC // of processes that were not known at first
	requests  chan raft.RPC
	raft      *raft.Raft
	log       raft.LogStore
	newest    func() position // the last entry of the newest snapshot there is
	instances Instances       // nil: every process counts
	fail      func(error)
	ended     chan struct{}
	ending    sync.Once
}

func newIncoming(from <-chan raft.RPC, log raft.LogStore, newest func() position, fail func(error)) *incoming {
	return &incoming{
		from: from, judged: make(chan raft.RPC), requests: make(chan raft.RPC), log: log, newest: newest, fail: fail, ended: make(chan struct{}),
	}
}

// begin passes on what has come, and what comes until the end, to a raft.
func (i *incoming) begin(r *raft.Raft) {
	i.raft = r
	go i.pass()
}

func (i *incoming) end() { i.ending.Do(func() { close(i.ended) }) }

func (i *incoming) pass() {
	for {
		select {
		case rpc := <-i.from:
			if i.follows(rpc) && !i.take(rpc) {
				return
			}
		case rpc := <-i.judged:
			if !i.take(rpc) {
				return
			}
		case <-i.ended:
			return
		}
	}
}

// identify answers a server that asks only which server is here (transport.call). Raft would log each as a rejected pre-vote.
func (i *incoming) identify(rpc raft.RPC) {
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: i.header, Term: i.raft.CurrentTerm()}, nil)
}

// follows reports whether a request is of a process that counts. One that this node does not know yet is judged meanwhile.
func (i *incoming) follows(rpc raft.RPC) bool {
	req, ok := rpc.Command.(raft.WithRPCHeader)
	if i.instances == nil || !ok {
		return true
	}
	if ask, ok := req.(*raft.RequestPreVoteRequest); ok && ask.Term == 0 {
		return true // it changes nothing, and the answer says which process this is
	}
	id := raft.ServerID(req.GetRPCHeader().ID)
	at, instance := decodePeer(req.GetRPCHeader().Addr)
	if i.instances.Follows(id, instance) {
		return true
	}
	go func() {
		if err := i.instances.Follow(id, at, instance); err != nil {
			if rpc.Reader != nil { // the connection goes on behind it
				_, _ = io.Copy(io.Discard, rpc.Reader)
			}
			rpc.Respond(nil, err)
			return
		}
		select {
		case i.judged <- rpc:
		case <-i.ended:
		}
	}()
	return false
}

// take returns false if nothing more is to be answered.
func (i *incoming) take(rpc raft.RPC) bool {
	switch req := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		rpc.Command = i.skipTaken(commitCompared(req))
		i.hand(rpc)
	case *raft.InstallSnapshotRequest:
		return i.install(rpc, req)
	case *raft.RequestPreVoteRequest:
		if req.Term == 0 {
			i.identify(rpc)
		} else {
			i.hand(rpc)
		}
	default:
		i.hand(rpc)
	}
	return true
}

// hand returns once raft has begun with a request, or has ended.
func (i *incoming) hand(rpc raft.RPC) {
	select {
	case i.requests <- rpc:
	case <-i.ended:
	}
}

// install passes nothing else on before raft is done with a snapshot, as that decides what is to be taken out. The answer is false if
// nothing more is to be answered.
//
// A snapshot of which all is here already is not installed: a leader that has not heard of that may send it, or it comes late. To say so
// makes nothing committed that was not, and what the leader sends next is compared. A leader whose term is over raft refuses itself.
func (i *incoming) install(rpc raft.RPC, req *raft.InstallSnapshotRequest) bool {
	last := position{ids.Index(req.LastLogIndex), ids.Term(req.LastLogTerm)}
	if req.Term >= i.raft.CurrentTerm() && (last.index <= ids.Index(i.raft.AppliedIndex()) || i.has(last)) {
		go func() {
			_, err := io.Copy(io.Discard, rpc.Reader)
			header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
			rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: header, Term: i.raft.CurrentTerm(), Success: err == nil}, err)
		}()
		return true
	}
	answers := make(chan raft.RPCResponse, 1)
	to := rpc.RespChan
	rpc.RespChan = answers
	i.hand(rpc)
	select {
	case answer := <-answers:
		if said, ok := answer.Response.(*raft.InstallSnapshotResponse); ok && said.Success && answer.Error == nil && i.countsOn(last) {
			i.fail(errStaleLog)
			return false
		}
		to <- answer
		return true
	case <-i.ended:
		return false
	}
}

// has tells whether an entry is in the log.
func (i *incoming) has(at position) bool {
	var entry raft.Log
	return i.log.GetLog(uint64(at.index), &entry) == nil && positionOf(&entry) == at
}

// errStaleLog is of a process that has to be started again, which does no harm.
var errStaleLog = errors.New("the log had other entries than the leader's snapshot, and raft counts them though they are gone: start again")

// countsOn tells whether raft takes entries for there that it has removed when it installed a snapshot: none of the leader's could follow,
// and it would vote as if it had them.
func (i *incoming) countsOn(installed position) bool {
	stats := i.raft.Stats()
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

// skipTaken answers a leader's message without what a snapshot has, if it begins before the log does. A snapshot that was received counts once
// raft has taken it over: until then not all of it is applied.
func (i *incoming) skipTaken(req *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	snapshot, previous := i.newest(), ids.Index(req.PrevLogEntry)
	if previous > snapshot.index || snapshot.index == 0 || ids.Index(i.raft.AppliedIndex()) < snapshot.index {
		return req
	}
	first, err := i.log.FirstIndex()
	isBehind := first == 0 || ids.Index(first) == snapshot.index+1
	if err != nil || first != 0 && previous >= ids.Index(first) || !isBehind && !i.has(snapshot) {
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
