package consensus

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// incoming is what other nodes ask of raft, one after the other. What entries of a leader's the newest snapshot has is taken out before
// raft sees it (skipCovered).
type incoming struct {
	requests chan raft.RPC
	ended    chan struct{}
	ending   sync.Once
}

func newIncoming(from <-chan raft.RPC, snapshots *snapshotStore) *incoming {
	i := &incoming{requests: make(chan raft.RPC), ended: make(chan struct{})}
	go i.pass(from, snapshots)
	return i
}

func (i *incoming) end() { i.ending.Do(func() { close(i.ended) }) }

func (i *incoming) pass(from <-chan raft.RPC, snapshots *snapshotStore) {
	for {
		select {
		case rpc := <-from:
			if req, isAppend := rpc.Command.(*raft.AppendEntriesRequest); isAppend {
				skipCovered(req, snapshots.last())
			}
			select {
			case i.requests <- rpc:
			case <-i.ended:
				return
			}
		case <-i.ended:
			return
		}
	}
}

// skipCovered has a leader's message begin behind the newest snapshot, if it reaches that far back. Raft compares what comes before a
// message with its log only, and that begins behind a snapshot that was installed: of what is in the snapshot it would refuse all, and the
// leader would send older and older entries, none of which can be compared.
//
// What a snapshot has is committed, so whoever leads has it too: raft refuses messages of a term that is over. Nothing is said of entries
// behind those of the message, which may be others than the leader's, so no more than that is called committed.
func skipCovered(req *raft.AppendEntriesRequest, snapshot position) {
	covered := slices.IndexFunc(req.Entries, func(entry *raft.Log) bool { return entry.Index > snapshot.index })
	if covered < 0 {
		covered = len(req.Entries)
	}
	last := position{req.PrevLogEntry, req.PrevLogTerm}
	if covered > 0 {
		last = position{req.Entries[covered-1].Index, req.Entries[covered-1].Term}
	}
	isBehind := covered == len(req.Entries) && covered > 0 && last.index < snapshot.index
	if snapshot.index == 0 || last != snapshot && !isBehind {
		return
	}
	req.Entries = req.Entries[covered:]
	req.PrevLogEntry, req.PrevLogTerm = 0, 0
	end := snapshot.index
	if n := len(req.Entries); n > 0 {
		end = req.Entries[n-1].Index
	}
	req.LeaderCommitIndex = min(req.LeaderCommitIndex, end)
}

// position is that of an entry in the log.
type position struct {
	index, term uint64
}
