package cluster

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"lockfs/cluster/backup"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

const (
	backupPiece = 1 << 20          // bytes in a piece
	maxBackups  = 2                // at a time: an old snapshot takes memory
	backupIdle  = 30 * time.Second // after which an abandoned backup is dropped
)

// backups are being fetched in pieces. Each keeps its snapshot, which shares unchanged parts with the
// state.
type backups struct {
	ctx   context.Context // ends when the node is closed
	begin func(context.Context) (func(io.Writer) error, error)
	idle  time.Duration

	places chan struct{} // one for each kept snapshot

	mu   sync.Mutex
	open map[uint64]*pieces
}

func newBackups(ctx context.Context, begin func(context.Context) (func(io.Writer) error, error)) *backups {
	return &backups{ctx: ctx, begin: begin, idle: backupIdle, places: make(chan struct{}, maxBackups), open: make(map[uint64]*pieces)}
}

// pieces is a backup that is being fetched.
type pieces struct {
	from   *io.PipeReader
	unused *time.Timer // drops it
	end    func() bool // unregisters the drop at the node's end
	using  int         // calls under way; guarded by the mutex of backups

	mu   sync.Mutex
	next uint64
	last *clusterpb.BackupReply // piece next-1
}

// piece begins a backup, or returns a piece of one.
func (b *backups) piece(ctx context.Context, req *clusterpb.BackupRequest) *clusterpb.BackupReply {
	if req.GetId() == 0 {
		id, err := b.add(ctx)
		if err != nil {
			return &clusterpb.BackupReply{Refused: err.Error()}
		}
		return &clusterpb.BackupReply{Id: id}
	}
	p := b.use(req.GetId())
	if p == nil {
		return &clusterpb.BackupReply{Refused: fmt.Sprintf("this backup was dropped, because it was not read for %v: start it again", b.idle)}
	}
	defer b.unuse(p)
	return p.get(req.GetId(), req.GetPiece())
}

func (b *backups) use(id uint64) *pieces {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.open[id]
	if p != nil {
		p.using++
		p.unused.Stop()
	}
	return p
}

func (b *backups) unuse(p *pieces) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.using--; p.using == 0 {
		p.unused.Reset(b.idle)
	}
}

// add begins a backup unless there are too many.
func (b *backups) add(ctx context.Context) (uint64, error) {
	select {
	case b.places <- struct{}{}:
	default:
		return 0, fmt.Errorf("%d backups are being fetched from this server: try again later, or another server", maxBackups)
	}
	write, err := b.begin(ctx)
	if err != nil {
		<-b.places
		return 0, err
	}
	from, to := io.Pipe()
	go func() {
		defer func() { <-b.places }() // the snapshot is not needed any more
		_ = to.CloseWithError(write(to))
	}()
	id := rand.Uint64() | 1
	p := &pieces{from: from}
	p.unused = time.AfterFunc(b.idle, func() { b.drop(id, false) })
	p.end = context.AfterFunc(b.ctx, func() { b.drop(id, true) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[id] = p
	return id, nil
}

// drop ends a backup; one with calls under way only if it must end now.
func (b *backups) drop(id uint64, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.open[id]; p != nil && (now || p.using == 0) {
		delete(b.open, id)
		p.end()
		_ = p.from.Close() // its writer gets an error
	}
}

// get returns the next piece, or the last one again.
func (p *pieces) get(id, number uint64) *clusterpb.BackupReply {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.last != nil && number == p.next-1:
		return p.last
	case number != p.next || p.last.GetLast():
		return &clusterpb.BackupReply{Refused: fmt.Sprintf("there is no piece %d to come of this backup", number)}
	}
	data := make([]byte, backupPiece)
	read, err := io.ReadFull(p.from, data)
	ended := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !ended {
		return &clusterpb.BackupReply{Refused: "it cannot be made: " + err.Error()}
	}
	p.next++
	p.last = &clusterpb.BackupReply{Id: id, Data: data[:read], Last: ended}
	return p.last
}

// backupSource makes backups of a node's state.
type backupSource struct {
	router  *rpc.Router // of the node
	raft    *consensus.Raft
	name    string // of the node
	program string // its version
}

// backupConfirm limits the wait for a quorum.
const backupConfirm = 15 * time.Second

// begin takes a snapshot with everything acknowledged before the call, and returns the function that
// writes it.
func (s *backupSource) begin(ctx context.Context) (func(io.Writer) error, error) {
	ctx, cancel := context.WithTimeout(ctx, backupConfirm)
	defer cancel()
	reply, err := rpc.Ask(ctx, s.router, rpc.Node.Execute, statFs)
	if err != nil {
		return nil, fmt.Errorf("no quorum of servers confirms the state to back up: %w; `lockfs status` shows which servers answer", err)
	}
	var snapshot *namespace.Snapshot
	cluster := ""
	err = s.raft.FSM.WaitFor(ctx, func(ns *namespace.Namespace) bool {
		if ns.Index() < ids.Index(reply.GetResult().GetIndex()) {
			return false
		}
		snapshot, cluster = ns.Snapshot(), ns.Cluster()
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("this server is behind the others: %w; `lockfs status` shows how far", err)
	}
	header := backup.Header{
		Cluster: cluster, Node: s.name, Program: s.program, Made: time.Now().UTC().Truncate(time.Second), Term: s.raft.CurrentTerm(),
	}
	return func(w io.Writer) error { return backup.Write(w, header, snapshot) }, nil
}
