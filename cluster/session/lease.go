package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// clientSession is one session of a client. A client that was silent for too long loses it and opens
// another.
type clientSession struct {
	id      uint64
	numbers *numbers

	mu    sync.Mutex
	until time.Duration // CLOCK_BOOTTIME until which the cluster surely has not given it up
}

// firstKeepalive comes before anything is known of the term.
const firstKeepalive = 100 * time.Millisecond

// margin is what a mount stops short of the term, for clocks that do not run at the same speed.
func margin(term time.Duration) time.Duration { return term / 10 }

// newSessionID draws an id that no other session has; 0 means no session.
func newSessionID() uint64 {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		if id := binary.LittleEndian.Uint64(random[:]); id != 0 {
			return id
		}
	}
}

// readBootID answers this boot's id; hosts that cannot tell have no sessions to take over.
func readBootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func (s *clientSession) extend(until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = max(s.until, until)
}

// fenced says that the cluster may have given the session up.
func (s *clientSession) fenced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return hostinfo.BootTime() >= s.until
}

// holder is the session in use, and how it is replaced.
type holder struct {
	mu      sync.Mutex
	session *clientSession // nil while there is none
	changed chan struct{}  // closed at each change

	confirmed uint64 // how often one was
	hopeless  bool   // none was for the whole time of a call, and there is none since
}

func newHolder() *holder { return &holder{changed: make(chan struct{})} }

func (h *holder) get() (*clientSession, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session, h.changed
}

// set answers false if old is not the session in use.
func (h *holder) set(old, session *clientSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != old {
		return false
	}
	h.session = session
	h.change()
	return true
}

// wake lets those look again who wait for a session to be confirmed.
func (h *holder) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change()
}

// change is called with the mutex held.
func (h *holder) change() {
	if h.session != nil {
		h.confirmed++
		h.hopeless = false
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// confirmations answers how often a session was confirmed so far.
func (h *holder) confirmations() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.confirmed
}

// endured is told of a call whose time is up, and how often a session had been confirmed when it began. It answers whether that
// begins a time without hope for those who need one.
func (h *holder) endured(since uint64) (begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hopeless || h.confirmed != since || h.session != nil && !h.session.fenced() {
		return false
	}
	h.hopeless = true
	return true
}

func (h *holder) isHopeless() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hopeless
}

// live answers a session that the cluster has surely not given up yet, and waits for one if need be.
func (c *Client) live(ctx context.Context) (*clientSession, error) {
	for {
		s, changed := c.holder.get()
		if s != nil && !s.fenced() {
			return s, nil
		}
		if s != nil {
			c.hurry()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("the session is not confirmed: %w", ctx.Err())
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// hurry makes the next keepalive come now.
func (c *Client) hurry() {
	select {
	case c.hurried <- struct{}{}:
	default:
	}
}

// keepAlive renews the session until the client is about to end it.
func (c *Client) keepAlive() {
	defer close(c.stopped)
	wait := firstKeepalive
	for {
		select {
		case <-time.After(wait):
		case <-c.hurried:
		case <-c.alive.Done():
			return
		}
		s, _ := c.holder.get()
		if s == nil {
			c.reopen()
			continue
		}
		wait = c.renew(s)
	}
}

// renew sends a keepalive and answers when the next one is due.
func (c *Client) renew(s *clientSession) time.Duration {
	ctx, cancel := context.WithTimeout(c.alive, rpc.AttemptTimeout)
	defer cancel()
	var sent time.Duration
	var asked time.Time
	var took time.Duration
	keepAlive := func(to rpc.Node, ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
		sent, asked = hostinfo.BootTime(), time.Now()
		reply, err := to.KeepAlive(ctx, req)
		took = time.Since(asked)
		return reply, err
	}
	reply, err := rpc.Ask(ctx, c.router, keepAlive, &clusterpb.KeepAliveRequest{Session: s.id, ClockOffset: c.offset.Load()})
	if err != nil {
		c.logger.Warn("no keepalive came through", "session", s.id, "error", err)
		return firstKeepalive
	}
	c.answered(anything)
	if reply.GetEnded() {
		c.lose(s)
		return 0
	}
	c.ahead.Store(reply.GetClusterTime() - int64(sent))
	c.offset.Store(wallClock(asked.Add(took/2)) - reply.GetClusterTime())
	c.router.Meet(reply.GetServers())
	c.leader.Store(new(reply.GetLeader()))
	term := time.Duration(reply.GetTerm())
	s.extend(sent + term - margin(term))
	c.holder.wake()
	return term / 3
}

// lose gives a session up that the cluster has ended.
func (c *Client) lose(s *clientSession) {
	if c.holder.set(s, nil) {
		c.logger.Warn("the cluster ended this mount's session; opening another", "session", s.id)
		c.hurry()
	}
}

// reopen opens a session in place of one that was lost, and tries until it has one.
func (c *Client) reopen() {
	for c.alive.Err() == nil {
		ctx, cancel := context.WithTimeout(c.alive, c.timeout)
		s, err := c.open(ctx, newSessionID(), newNumbers(0))
		cancel()
		if err == nil {
			c.holder.set(nil, s)
			c.holders.lookNow()
			return
		}
		c.logger.Error("no session could be opened; trying again", "error", err)
		select {
		case <-time.After(reopenPause):
		case <-c.alive.Done():
		}
	}
}

// reopenPause is for a cluster that says no: it will for a while.
const reopenPause = time.Second

// openFirst opens the first session. A host that crashed and booted again soon has to wait until the
// session ends that it had before.
func (c *Client) openFirst(ctx context.Context) (*clientSession, error) {
	for warned := false; ; warned = true {
		session, err := c.open(ctx, newSessionID(), newNumbers(0))
		refused := new(rpc.RefusedError)
		if !errors.As(err, &refused) || refused.Result.GetCode() != storepb.Code_BUSY {
			return session, err
		}
		if !warned {
			c.logger.Warn("waiting", "error", err)
		}
		select {
		case <-time.After(reopenPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// open opens or takes over a session. The error is a *rpc.RefusedError if the cluster says no.
func (c *Client) open(ctx context.Context, id uint64, numbers *numbers) (*clientSession, error) {
	op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{
		Host: c.host, BootId: c.bootID, Started: int64(c.started), NoLockDelay: c.noDelay, Machine: c.machine, PidNamespace: c.holders.namespace,
	}}}
	result, err := c.send(ctx, &storepb.Command{Session: id, Op: op})
	if err == nil && result.GetCode() != storepb.Code_OK {
		err = &rpc.RefusedError{Result: result}
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	c.journal.adopt(id, numbers.last)
	s := &clientSession{id: id, numbers: numbers}
	c.renew(s)
	return s, nil
}

// wallClock is what this host's clock said, nanoseconds since the Unix epoch.
func wallClock(at time.Time) int64 { return at.UnixNano() + int64(fault.ClockOffset) }

// Status is what this mount knows of itself.
func (c *Client) Status() *storepb.MountStatus {
	status := &storepb.MountStatus{
		Host: c.host, ClockOffset: c.offset.Load(), ClusterTime: wallClock(time.Now()) - c.offset.Load(),
	}
	status.Session = c.lastSession()
	if leader := c.leader.Load(); leader != nil {
		status.Leader = *leader
	}
	return status
}

// ClusterTime is cluster time as the last keepalive told it. It goes on while the host sleeps, and does not
// follow this host's wall clock. It is ahead by at most what that keepalive took, and behind only by how far the
// cluster's clocks have drifted since. It is not known before a keepalive was answered (Session tells).
func (c *Client) ClusterTime() time.Time {
	return time.Unix(0, int64(hostinfo.BootTime())+c.ahead.Load())
}

// Offset is how far this host's clock is ahead of cluster time, as last measured.
func (c *Client) Offset() time.Duration { return time.Duration(c.offset.Load()) }
