package consensus

import (
	"errors"
	"io"
	"slices"
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

// incoming is what other nodes ask of raft, one after the other. Raft knows what comes before its log only as long as nothing is behind
// that: the log begins behind a snapshot that was installed, and of messages that reach back to it all would be refused. So what such a
// snapshot has is taken out of them (skipCovered).
type incoming struct {
	from     <-chan raft.RPC
	requests chan raft.RPC
	log      *earlyLog
	fail     func(error)
	snapshot position // with which raft began, or which it has installed since
	ended    chan struct{}
	ending   sync.Once
}

func newIncoming(from <-chan raft.RPC, log *earlyLog, snapshot position, fail func(error)) *incoming {
	i := &incoming{from: from, requests: make(chan raft.RPC), log: log, fail: fail, snapshot: snapshot, ended: make(chan struct{})}
	go i.pass()
	return i
}

func (i *incoming) end() { i.ending.Do(func() { close(i.ended) }) }

func (i *incoming) pass() {
	for {
		select {
		case rpc := <-i.from:
			switch req := rpc.Command.(type) {
			case *raft.AppendEntriesRequest:
				rpc.Command = i.skipInstalled(req)
				i.hand(rpc)
			case *raft.InstallSnapshotRequest:
				i.install(rpc, req)
			default:
				i.hand(rpc)
			}
		case <-i.ended:
			return
		}
	}
}

// hand returns once raft has begun with a request, or has ended.
func (i *incoming) hand(rpc raft.RPC) {
	select {
	case i.requests <- rpc:
	case <-i.ended:
	}
}

// install passes nothing else on before raft is done with a snapshot, as that decides what is to be taken out.
//
// Raft would empty its log even if that goes on behind the snapshot, with entries that others count on. A leader that has not heard yet
// what is here may send such a snapshot; it is told that all of it is here.
func (i *incoming) install(rpc raft.RPC, req *raft.InstallSnapshotRequest) {
	last := position{ids.Index(req.LastLogIndex), ids.Term(req.LastLogTerm)}
	if r := i.log.raft.Load(); r != nil && req.Term == r.CurrentTerm() && i.has(last) {
		_, err := io.Copy(io.Discard, rpc.Reader)
		header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
		rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: header, Term: r.CurrentTerm(), Success: err == nil}, err)
		return
	}
	answers := make(chan raft.RPCResponse, 1)
	to := rpc.RespChan
	rpc.RespChan = answers
	i.hand(rpc)
	select {
	case answer := <-answers:
		if said, ok := answer.Response.(*raft.InstallSnapshotResponse); ok && said.Success && answer.Error == nil {
			i.snapshot = last
			i.checkInstalled()
		}
		to <- answer
	case <-i.ended:
	}
}

// has tells whether an entry is in the log.
func (i *incoming) has(at position) bool {
	var entry raft.Log
	return i.log.GetLog(uint64(at.index), &entry) == nil && positionOf(&entry) == at
}

// errStaleLog is of a process that has to be started again, which does no harm.
var errStaleLog = errors.New("the log had more entries than the leader's snapshot, and raft counts them though they are gone: start again")

// checkInstalled ends the process if raft takes entries for there that it has removed when it installed a snapshot: none of the leader's
// could follow.
func (i *incoming) checkInstalled() {
	if r := i.log.raft.Load(); r != nil && ids.Index(r.LastIndex()) > i.snapshot.index {
		i.fail(errStaleLog)
	}
}

// skipInstalled answers a leader's message without what a snapshot has that the log begins behind. With all other logs raft can compare.
func (i *incoming) skipInstalled(req *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	if i.snapshot.index == 0 || ids.Index(req.PrevLogEntry) > i.snapshot.index {
		return req
	}
	first, err := i.log.FirstIndex()
	if err != nil || first != 0 && ids.Index(first) != i.snapshot.index+1 {
		return req
	}
	return skipCovered(req, i.snapshot)
}

// skipCovered answers a leader's message as it would be if it began behind a snapshot, if it reaches that far back.
//
// What a snapshot has is committed, so whoever leads has it too: raft refuses messages of a term that is over. Nothing is said of entries
// behind those of the message, which may be others than the leader's, so no more than that is called committed.
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
	end := uint64(snapshot.index)
	if n := len(skipped.Entries); n > 0 {
		end = skipped.Entries[n-1].Index
	}
	skipped.LeaderCommitIndex = min(req.LeaderCommitIndex, end)
	return &skipped
}
