package session

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/process"
	"lockfs/formats/pause"
	"lockfs/raftstore/storepb"
)

// holders knows the processes of this host that hold locks, and tells the cluster when one has ended.
//
// A lock's process is watched from when its content is committed. What an earlier process of the mount, or
// another mount of this host, had watched is found by asking the cluster from time to time.
type holders struct {
	cluster   asker
	ctx       context.Context // ends when the client is closed
	host      string
	bootID    string
	logger    *slog.Logger
	namespace uint64 // of the pids that this process can judge
	hostname  string
	watcher   *process.Watcher
	creators  *creators

	look chan struct{} // holds one: ask the cluster now

	mu     sync.Mutex
	marks  map[process.ID]string // of holders that run commands
	gone   []end                 // not told yet
	notify chan struct{}         // holds one: there are some
	done   sync.WaitGroup
}

// asker is what holders need of a client.
type asker interface {
	Query(context.Context, *storepb.Query) (*storepb.Result, error)
	Mutate(context.Context, *storepb.Caller, *storepb.Op) (*storepb.Result, error)
	ClusterTime() time.Time
	Offset() time.Duration
}

// end is that of a process.
type end struct {
	of  *storepb.Process
	at  int64 // cluster time; 0: it is not known whether it came at once
	how process.End
}

const (
	// holdersInterval is how often the cluster is asked for locks whose processes nobody else may be watching.
	holdersInterval = 15 * time.Second
	// goneRetry is the pause after the cluster could not be told.
	goneRetry = 200 * time.Millisecond
	// goneBatch is how many processes one command tells of.
	goneBatch = 1000
)

func newHolders(ctx context.Context, cluster asker, host, bootID string, logger *slog.Logger) (*holders, error) {
	h := &holders{
		cluster: cluster, ctx: ctx, host: host, bootID: bootID, logger: logger, creators: newCreators(),
		look: make(chan struct{}, 1), notify: make(chan struct{}, 1), marks: make(map[process.ID]string),
	}
	var err error
	if h.namespace, err = process.Namespace(); err != nil {
		return nil, err
	}
	if h.hostname, err = os.Hostname(); err != nil {
		return nil, err
	}
	h.watcher, err = process.NewWatcher(h.awaitMarked)
	return h, err
}

func (h *holders) run() {
	h.done.Go(h.report)
	h.done.Go(func() {
		for {
			h.watchAll()
			select {
			case <-h.look:
			case <-time.After(holdersInterval):
			case <-h.ctx.Done():
				return
			}
		}
	})
}

// close is called once the client's context has ended.
func (h *holders) close() error {
	h.done.Wait()
	return h.watcher.Close()
}

// lookNow is for a new session: what happened while there was none was not told.
func (h *holders) lookNow() { signal(h.look) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ours answers a process that can be watched from here.
func (h *holders) ours(p *storepb.Process) (id process.ID, ok bool) {
	if p.GetPid() == 0 || p.GetPidNamespace() != h.namespace || p.GetBootId() != h.bootID {
		return process.ID{}, false
	}
	return process.ID{PID: int(p.GetPid()), Start: p.GetStart()}, true
}

// prepare is called before a lock is committed, while its writer cannot have ended: how a process ended is known only if a
// descriptor of it was opened before.
func (h *holders) prepare(p *storepb.Process) {
	if id, ok := h.ours(p); ok {
		_ = h.watcher.Prepare(id) // watch tries again
	}
}

// watch is called once a lock has been committed. A process that ended before that is told of then.
func (h *holders) watch(p *storepb.Process) {
	id, ok := h.ours(p)
	if !ok {
		return
	}
	h.creators.note(id)
	if !h.noteMark(id) {
		return
	}
	if err := h.watcher.Watch(id); err != nil {
		h.logger.Error("a holder cannot be watched; looking again later", "pid", p.GetPid(), "error", err)
	}
}

func (h *holders) watchAll() {
	query := &storepb.ListProcesses{Host: h.host}
	result, err := h.cluster.Query(h.ctx, &storepb.Query{Query: &storepb.Query_ListProcesses{ListProcesses: query}})
	if err != nil {
		return // the next look
	}
	for _, p := range result.GetProcesses() {
		h.watch(p)
	}
}

// noteMark remembers the mark of a holder that runs a command. It returns false if the holder has ended and what it started has
// not: then the end is reported later.
func (h *holders) noteMark(id process.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.marks[id]; known {
		return process.Alive(id)
	}
	if mark := process.MarkOf(id.PID); mark != "" {
		h.marks[id] = mark
	}
	return true
}

// markInterval is how often marked processes are looked for; nothing reports their end.
const markInterval = 100 * time.Millisecond

// awaitMarked reports the end of a holder, which the watcher has seen. If the holder was killed and ran a command, it does so once
// all processes have ended that the command started: the lock stays until then.
func (h *holders) awaitMarked(id process.ID, end process.End) {
	h.mu.Lock()
	mark := h.marks[id]
	h.mu.Unlock()
	if mark == "" {
		h.ended(id, end)
		return
	}
	go func() {
		for left := process.Marked(mark); len(left) > 0; left = process.Marked(mark) {
			h.logger.Info("a lock's holder was killed; the lock stays until the processes have ended that it started",
				"holder", id.PID, "processes", left)
			for len(left) > 0 && pause.For(h.ctx, markInterval) == nil {
				left = slices.DeleteFunc(left, func(pid int) bool { return !process.IsMarked(pid, mark) || process.Exiting(pid) })
			}
			if h.ctx.Err() != nil {
				return
			}
		}
		h.mu.Lock()
		delete(h.marks, id)
		h.mu.Unlock()
		h.ended(id, end)
	}()
}

// ended reports the end of a process.
func (h *holders) ended(id process.ID, how process.End) {
	at := int64(0)
	if h.creators.ended(id) {
		at = h.cluster.ClusterTime().UnixNano()
	}
	h.mu.Lock()
	h.gone = append(h.gone, end{h.message(id), at, how})
	h.mu.Unlock()
	signal(h.notify)
}

// report tells the cluster of processes that have ended, until it knows.
func (h *holders) report() {
	for {
		select {
		case <-h.notify:
		case <-h.ctx.Done():
			return
		}
		for gone := h.take(); len(gone) > 0; gone = h.take() {
			h.reportEnds(gone)
		}
	}
}

func (h *holders) take() []end {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(h.gone), goneBatch)
	batch := h.gone[:n:n]
	h.gone = h.gone[n:]
	return batch
}

func (h *holders) reportEnds(ends []end) {
	gone := new(storepb.ProcessGone)
	for _, end := range ends {
		gone.Processes, gone.Ended = append(gone.Processes, end.of), append(gone.Ended, end.at)
		gone.Ends = append(gone.Ends, endMessage(end.how))
	}
	op := &storepb.Op{Op: &storepb.Op_ProcessGone{ProcessGone: gone}}
	for h.ctx.Err() == nil {
		if _, err := h.cluster.Mutate(h.ctx, &storepb.Caller{}, op); err == nil {
			return
		}
		_ = pause.For(h.ctx, goneRetry)
	}
}

func endMessage(how process.End) *storepb.ProcessEnd {
	switch {
	case how.Known && how.Status.Signaled():
		return &storepb.ProcessEnd{Kind: storepb.EndKind_END_SIGNAL, Number: uint32(how.Status.Signal())}
	case how.Known:
		return &storepb.ProcessEnd{Kind: storepb.EndKind_END_EXIT, Number: uint32(how.Status.ExitStatus())}
	}
	return new(storepb.ProcessEnd)
}

func (h *holders) message(id process.ID) *storepb.Process {
	return &storepb.Process{PidNamespace: h.namespace, Pid: uint32(id.PID), Start: id.Start, BootId: h.bootID}
}
