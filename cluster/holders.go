package cluster

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"lockfs/cluster/process"
	"lockfs/formats"
	"lockfs/formats/semaphore"
	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// holders knows the processes of this host that hold locks, and tells the cluster when one has ended.
//
// A lock's process is watched from when its content is committed. What an earlier process of the mount, or
// another mount of this host, had watched is found by asking the cluster from time to time.
type holders struct {
	client    *Client
	logger    *slog.Logger
	namespace uint64 // of the pids that this process can judge
	hostname  string
	watcher   *process.Watcher

	look chan struct{} // holds one: ask the cluster now

	mu     sync.Mutex
	gone   []*storepb.Process // not told yet
	notify chan struct{}      // holds one: there are some
	done   sync.WaitGroup
}

const (
	// holdersLook is how often the cluster is asked for locks whose processes nobody else may be watching.
	holdersLook = 15 * time.Second
	// goneRetry is the pause after the cluster could not be told.
	goneRetry = 200 * time.Millisecond
	// goneBatch is how many processes one command tells of.
	goneBatch = 1000
)

func newHolders(c *Client) (*holders, error) {
	h := &holders{client: c, logger: c.logger, look: make(chan struct{}, 1), notify: make(chan struct{}, 1)}
	var err error
	if h.namespace, err = process.Namespace(); err != nil {
		return nil, err
	}
	if h.hostname, err = os.Hostname(); err != nil {
		return nil, err
	}
	h.watcher, err = process.NewWatcher(h.ended)
	return h, err
}

func (h *holders) run() {
	h.done.Go(h.tell)
	h.done.Go(func() {
		for {
			h.watchAll()
			select {
			case <-h.look:
			case <-time.After(holdersLook):
			case <-h.client.ctx.Done():
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

// describe works out what a content says about its lock, as the caller who writes it means it: on this
// host's clock, and with the pids of the caller's namespace. Nil if it is of no format.
func (h *holders) describe(caller *storepb.Caller, content []byte) *storepb.Facts {
	origin := formats.Origin{Host: h.client.host, Hostname: h.hostname, ClockOffset: h.client.Offset()}
	format := formats.Detect(content)
	if format == formats.Beads {
		if name, err := process.Hostname(int(caller.GetPid())); err == nil {
			origin.Hostname = name
		}
	}
	if format == formats.None {
		return nil
	}
	facts := formats.FactsOf(content, origin, formats.Rule{})
	message := raftstore.FactsMessage(facts)
	if lock, err := semaphore.Parse(content); err == nil && format == formats.Semaphore {
		message.Tag = lock.Tag
	}
	if facts.ByProcess() {
		if id, err := process.Find(int(caller.GetPid()), facts.PID); err == nil {
			message.Process = h.message(id)
		}
	}
	return message
}

// lineage is a caller's process with its ancestors. It is never empty: a caller that cannot be seen
// descends from nobody.
func (h *holders) lineage(caller *storepb.Caller) []*storepb.Process {
	relatives, _ := process.Lineage(int(caller.GetPid()))
	line := []*storepb.Process{{}}
	for _, relative := range relatives {
		line = append(line, h.message(relative.ID))
	}
	return line
}

func (h *holders) message(id process.ID) *storepb.Process {
	return &storepb.Process{PidNamespace: h.namespace, Pid: uint32(id.PID), Start: id.Start, BootId: h.client.bootID}
}

// watch is called once a lock has been committed. A process that ended before that is told of then.
func (h *holders) watch(p *storepb.Process) {
	if p == nil || p.GetPidNamespace() != h.namespace || p.GetBootId() != h.client.bootID {
		return
	}
	if err := h.watcher.Watch(process.ID{PID: int(p.GetPid()), Start: p.GetStart()}); err != nil {
		h.logger.Error("a holder cannot be watched; looking again later", "pid", p.GetPid(), "error", err)
	}
}

func (h *holders) watchAll() {
	ctx, cancel := context.WithTimeout(h.client.ctx, h.client.timeout)
	defer cancel()
	query := &storepb.ListProcesses{Host: h.client.host}
	result, err := h.client.Query(ctx, &storepb.Query{Query: &storepb.Query_ListProcesses{ListProcesses: query}})
	if err != nil {
		return // the next look
	}
	for _, p := range result.GetProcesses() {
		h.watch(p)
	}
}

// ended is called by the watcher.
func (h *holders) ended(id process.ID) {
	h.mu.Lock()
	h.gone = append(h.gone, h.message(id))
	h.mu.Unlock()
	signal(h.notify)
}

// tell tells the cluster of processes that have ended, until it knows.
func (h *holders) tell() {
	for {
		select {
		case <-h.notify:
		case <-h.client.ctx.Done():
			return
		}
		for gone := h.take(); len(gone) > 0; gone = h.take() {
			h.tellOf(gone)
		}
	}
}

func (h *holders) take() []*storepb.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(h.gone), goneBatch)
	batch := h.gone[:n:n]
	h.gone = h.gone[n:]
	return batch
}

func (h *holders) tellOf(gone []*storepb.Process) {
	op := &storepb.Op{Op: &storepb.Op_ProcessGone{ProcessGone: &storepb.ProcessGone{Processes: gone}}}
	for h.client.ctx.Err() == nil {
		if _, err := h.client.Mutate(h.client.ctx, &storepb.Caller{}, op); err == nil {
			return
		}
		select {
		case <-time.After(goneRetry):
		case <-h.client.ctx.Done():
		}
	}
}
