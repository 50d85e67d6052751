package session

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"lockfs/cluster/process"
	"lockfs/formats"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/raftstore"
	"lockfs/raftstore/fault"
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
	makers    *makers

	look chan struct{} // holds one: ask the cluster now

	mu     sync.Mutex
	gone   []end         // not told yet
	notify chan struct{} // holds one: there are some
	done   sync.WaitGroup
}

// end is that of a process.
type end struct {
	of *storepb.Process
	at int64 // cluster time; 0: it is not known whether it came at once
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
	h := &holders{client: c, logger: c.logger, makers: newMakers(), look: make(chan struct{}, 1), notify: make(chan struct{}, 1)}
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
// host's clock, and with the pids of the caller's namespace. Nil if nobody could judge it.
func (h *holders) describe(caller *storepb.Caller, content []byte) *storepb.Facts {
	if len(content) == 0 {
		return nil
	}
	format := formats.Detect(content)
	holder := process.ID{}
	if format == formats.PID {
		// A number is a pid only if it was one when it was written: of the writer, or of a relative.
		number, err := pid.Parse(content)
		if err == nil {
			holder, err = process.FindKin(int(caller.GetPid()), number.PID)
		}
		if err != nil && !fault.AnyNumber {
			return nil
		}
	}
	if format == formats.None {
		return h.evidence(caller, content)
	}
	origin := formats.Origin{Host: h.client.host, Hostname: h.hostname, ClockOffset: h.client.Offset()}
	if format == formats.Beads {
		origin.Hostname = h.hostnameOf(caller)
	}
	facts := formats.FactsOf(content, origin, formats.Rule{})
	message := raftstore.FactsMessage(facts)
	if lock, err := semaphore.Parse(content); err == nil && format == formats.Semaphore {
		message.Tag = lock.Tag
	}
	if facts.ByProcess() && format != formats.PID {
		holder, _ = process.Find(int(caller.GetPid()), facts.PID)
	}
	if holder != (process.ID{}) {
		message.Process = h.introduce(holder)
	}
	return message
}

// evidence is for a content of no format, and for the target of a symbolic link: it can be judged if it tells of its writer.
func (h *holders) evidence(caller *storepb.Caller, content []byte) *storepb.Facts {
	evidence := formats.EvidenceIn(content, formats.Writer{
		Hosts: []string{h.client.host, h.hostnameOf(caller)}, Now: time.Now(),
		IsKin: func(pid int) bool {
			_, err := process.FindKin(int(caller.GetPid()), pid)
			return err == nil
		},
	})
	if evidence == "" {
		return nil
	}
	return &storepb.Facts{Format: string(formats.None), Evidence: evidence}
}

// hostnameOf is what the caller takes for the name of this host.
func (h *holders) hostnameOf(caller *storepb.Caller) string {
	if name, err := process.Hostname(int(caller.GetPid())); err == nil {
		return name
	}
	return h.hostname
}

// lineage is a caller's process with its ancestors, and how many of them are its family: those in whose place it may make
// something. It is never empty: a caller that cannot be seen descends from nobody.
func (h *holders) lineage(caller *storepb.Caller) (line []*storepb.Process, family int) {
	relatives, _ := process.Lineage(int(caller.GetPid()))
	for i, relative := range relatives {
		if family == i && relative.Group != 0 && relative.Group == relatives[0].Group || i == 0 {
			family = i + 1
			line = append(line, h.introduce(relative.ID))
			continue
		}
		line = append(line, h.message(relative.ID))
	}
	if line == nil {
		return []*storepb.Process{{}}, 0
	}
	return line, family
}

func (h *holders) message(id process.ID) *storepb.Process {
	return &storepb.Process{PidNamespace: h.namespace, Pid: uint32(id.PID), Start: id.Start, BootId: h.client.bootID}
}

// introduce tells of a process from where it can be judged, too.
func (h *holders) introduce(id process.ID) *storepb.Process {
	message := h.message(id)
	message.SeenFrom, _ = process.Namespaces(id.PID)
	return message
}

// introduceCaller says from where a caller judges, for what a guard may refuse him.
func (h *holders) introduceCaller(caller *storepb.Caller, op *storepb.Op) {
	switch op.GetOp().(type) {
	case *storepb.Op_Unlink, *storepb.Op_Rename, *storepb.Op_SetContent:
		caller.PidNamespace, _ = process.NamespaceOf(int(caller.GetPid()))
	}
}

// ours answers a process that can be watched from here.
func (h *holders) ours(p *storepb.Process) (id process.ID, ok bool) {
	if p.GetPid() == 0 || p.GetPidNamespace() != h.namespace || p.GetBootId() != h.client.bootID {
		return process.ID{}, false
	}
	return process.ID{PID: int(p.GetPid()), Start: p.GetStart()}, true
}

// watch is called once a lock has been committed. A process that ended before that is told of then.
func (h *holders) watch(p *storepb.Process) {
	id, ok := h.ours(p)
	if !ok {
		return
	}
	h.makers.meet(id)
	if err := h.watcher.Watch(id); err != nil {
		h.logger.Error("a holder cannot be watched; looking again later", "pid", p.GetPid(), "error", err)
	}
}

func (h *holders) watchAll() {
	query := &storepb.ListProcesses{Host: h.client.host}
	result, err := h.client.Query(h.client.ctx, &storepb.Query{Query: &storepb.Query_ListProcesses{ListProcesses: query}})
	if err != nil {
		return // the next look
	}
	for _, p := range result.GetProcesses() {
		h.watch(p)
	}
}

// ended is called by the watcher.
func (h *holders) ended(id process.ID) {
	at := int64(0)
	if h.makers.ended(id) {
		at = h.client.ClusterTime().UnixNano()
	}
	h.mu.Lock()
	h.gone = append(h.gone, end{h.message(id), at})
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

func (h *holders) take() []end {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(h.gone), goneBatch)
	batch := h.gone[:n:n]
	h.gone = h.gone[n:]
	return batch
}

func (h *holders) tellOf(ends []end) {
	gone := new(storepb.ProcessGone)
	for _, end := range ends {
		gone.Processes, gone.Ended = append(gone.Processes, end.of), append(gone.Ended, end.at)
	}
	op := &storepb.Op{Op: &storepb.Op_ProcessGone{ProcessGone: gone}}
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
