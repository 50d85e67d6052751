package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/test/history"
)

// mount is a client of the cluster with a journal, in the process of a server or on a host of its own. When it dies, a successor goes
// on with the journal.
type mount struct {
	w    *world
	name string
	h    *host
	near *server // nil: there is none
	file string

	mu      sync.Mutex
	client  *session.Client // nil: it has died, and its successor is not there yet
	gen     int             // how often it has died
	open    []*history.Call // of unknown outcome, and not settled as far as is known
	changed chan struct{}
}

func (m *mount) config() session.Config {
	var opened *session.Client
	var mu sync.Mutex
	cfg := session.Config{
		Host: m.name, OpTimeout: m.w.opTimeout, SessionFile: m.file, Logger: m.w.logger.With("mount", m.name),
		Security: &rpc.Security{Network: m.h},
	}
	gen := m.generation()
	cfg.Heard = func(reply *clusterpb.KeepAliveReply) {
		m.mu.Lock()
		client := m.client
		same := m.gen == gen
		m.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		if opened == nil && same {
			opened = client
		}
		if reply.GetEnded() && opened != nil && opened.Remaining() > 0 {
			m.w.fail(fmt.Errorf("the session of %s was ended, and %v were left of what it had been promised", m.name, opened.Remaining()))
		}
	}
	return cfg
}

// start opens the mount's client, and tries until it can, or the mount has died again.
func (m *mount) start() {
	gen := m.generation()
	for !m.w.isOver() && m.generation() == gen {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		var client *session.Client
		var err error
		if m.near == nil {
			client, err = session.Dial(ctx, m.w.addresses(), m.config())
		} else if node := m.near.running(); node != nil {
			client, err = node.OpenClient(ctx, m.config())
		} else {
			err = context.Canceled
		}
		cancel()
		if err != nil {
			m.w.logger.Warn("no mount yet", "mount", m.name, "error", err)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		m.keepJournal(gen)
		m.mu.Lock()
		if m.gen == gen && m.client == nil {
			m.client = client
			m.settled(m.open) // its journal had them
			m.open = nil
			m.change()
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		kill(client)
	}
}

// keptJournals is a directory of the journals that there were, also of those that have been removed.
const keptJournals = "journals"

func (m *mount) keepJournal(gen int) {
	dir := filepath.Join(m.w.dir, keptJournals)
	must(os.MkdirAll(dir, 0o700))
	_ = os.Link(m.file, filepath.Join(dir, fmt.Sprintf("%s-%d", m.name, gen))) // it may be there, or gone already
}

func (m *mount) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// await answers the client once there is one, and its generation.
func (m *mount) await() (*session.Client, int) {
	for {
		m.mu.Lock()
		client, gen, changed := m.client, m.gen, m.changed
		m.mu.Unlock()
		if client != nil {
			return client, gen
		}
		<-changed
	}
}

// leaveOpen notes a call of unknown outcome.
func (m *mount) leaveOpen(call *history.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = append(m.open, call)
}

// done is told of a call that was answered. What the mount had given up before that began is settled: else it would not have begun, or not
// been answered if it tells what is in a directory that the other would change.
func (m *mount) done(call *history.Call) {
	switch call.Errno {
	case syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.EIO: // by nobody
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	isOver := func(open *history.Call) bool {
		done := call.Mutates() && call.Errno == 0
		return open.End < call.Start && (done || !call.OnDescriptor() && !open.OnDescriptor() && open.Dir == call.Dir)
	}
	m.settled(slices.DeleteFunc(slices.Clone(m.open), func(open *history.Call) bool { return !isOver(open) }))
	m.open = slices.DeleteFunc(m.open, isOver)
}

func (m *mount) allSettled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled(m.open)
	m.open = nil
}

func (m *mount) settled(calls []*history.Call) {
	for _, call := range calls {
		call.Over = m.w.now()
	}
}

func (m *mount) isRunning() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client != nil
}

func (m *mount) generation() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gen
}

// die ends the mount's process. What its journal holds at this moment is the successor's. Nothing else may run meanwhile.
func (m *mount) die() {
	m.mu.Lock()
	client := m.client
	m.client = nil
	m.gen++
	gen := m.gen
	m.change()
	m.mu.Unlock()
	if left, err := os.ReadFile(m.file); err == nil {
		m.file = filepath.Join(filepath.Dir(m.file), fmt.Sprintf("journal-%d", gen))
		must(os.WriteFile(m.file, left, 0o600))
	}
	if client != nil {
		m.w.closing.Go(func() { kill(client) })
	}
}

// kill ends a client without a word.
func kill(client *session.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = client.Close(ctx)
}
