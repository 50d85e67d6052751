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

// holders tracks the processes on this host with locks, and reports their ends to the cluster.
//
// It watches a process from the commit of its lock. It periodically asks the cluster for processes watched by
// earlier processes of the mount or by other mounts of this host.
type holders struct {
	cluster   asker
	ctx       context.Context // ends when the client closes
	host      string
	bootID    string
	logger    *slog.Logger
	namespace uint64 // pid namespace of this process
	hostname  string
	watcher   *process.Watcher
	creators  *creators

	look chan struct{} // holds one element: ask the cluster now

	mu     sync.Mutex
	marks  map[process.ID]string // of holders with commands
	gone   []end                 // not reported yet
	notify chan struct{}         // holds one element: there are ends to report
	done   sync.WaitGroup
}

type asker interface {
	Query(context.Context, *storepb.Query) (*storepb.Result, error)
	Mutate(context.Context, *storepb.Caller, *storepb.Op) (*storepb.Result, error)
	ClusterTime() time.Time
	Offset() time.Duration
}

type end struct {
	of  *storepb.Process
	at  int64 // cluster time; 0: it may have ended at once
	how process.End
}

const (
	// holdersInterval is the time between two requests for processes without a watch.
	holdersInterval = 15 * time.Second
	goneRetry       = 200 * time.Millisecond
	goneBatch       = 1000
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

// close waits for the tasks; call it after the client's context has ended.
func (h *holders) close() error {
	h.done.Wait()
	return h.watcher.Close()
}

// lookNow asks the cluster after the start of a new session: earlier ends may be unreported.
func (h *holders) lookNow() { signal(h.look) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ours returns the id of a process which this process can watch.
func (h *holders) ours(p *storepb.Process) (id process.ID, ok bool) {
	if p.GetPid() == 0 || p.GetPidNamespace() != h.namespace || p.GetBootId() != h.bootID {
		return process.ID{}, false
	}
	return process.ID{PID: int(p.GetPid()), Start: p.GetStart()}, true
}

// prepare opens a descriptor of a holder's process before the commit of its lock, while the writer cannot
// end. The exit status is available only with such a descriptor.
func (h *holders) prepare(p *storepb.Process) {
	if id, ok := h.ours(p); ok {
		_ = h.watcher.Prepare(id) // watch retries
	}
}

// watch watches the holder of a committed lock. If the process has ended before, the watcher reports this
// now.
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
		return // the next round retries
	}
	for _, p := range result.GetProcesses() {
		h.watch(p)
	}
}

// noteMark records the mark of a holder with a command. It returns false if the holder has ended and its
// child processes run: awaitMarked reports the end later.
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

// markInterval is the time between two checks of marked processes; the kernel does not report their ends.
const markInterval = 100 * time.Millisecond

// awaitMarked reports the end of a holder. If the holder was killed and ran a command, the lock stays until
// all processes of the command have ended.
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

// report informs the cluster of ended processes, and retries until it succeeds.
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
