package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// Open opens a session through the voter of this process, which knows other nodes by their addresses. It waits for a leader
// until ctx ends.
func Open(ctx context.Context, near Voter, peers *rpc.Peers, cfg Config) (*Client, error) {
	return openClient(ctx, near, rpc.NewRouter(peers, near), nil, cfg)
}

// Dial opens a session through the servers with these addresses. It waits for a leader until ctx ends. A client that goes on with a session
// (Config.Inherited) waits no longer than its OpTimeout, and is there then all the same.
func Dial(ctx context.Context, servers []string, cfg Config) (*Client, error) {
	peers := rpc.NewPeers(cfg.Security)
	cfg.setDefaults()
	var client *Client
	var err error
	if cfg.Inherited == nil { // else the cluster may be silent, and programs wait to be told so
		cfg.cluster, err = checkServers(ctx, servers, peers.Nodes(servers), cfg.Versions)
	}
	if err == nil {
		client, err = openClient(ctx, nil, rpc.NewRoamingRouter(peers, peers.Nodes(servers)...), peers, cfg)
	}
	if err != nil {
		peers.Close()
	}
	return client, err
}

// noteDetour logs which way calls take.
func (c *Client) noteDetour(leader, via string) {
	if via == "" {
		c.logger.Info("the leader can be reached again", "leader", leader)
		return
	}
	c.logger.Warn("the leader cannot be reached from this host: another server forwards calls; check the network between this host and the leader",
		"leader", leader, "server", via)
}

func (cfg *Config) setDefaults() {
	if cfg.OpTimeout == 0 {
		cfg.OpTimeout = DefaultOpTimeout
	}
	if cfg.Versions == (version.Range{}) {
		cfg.Versions = version.Own()
	}
}

func openClient(ctx context.Context, near Voter, via *rpc.Router, own *rpc.Peers, cfg Config) (*Client, error) {
	cfg.setDefaults()
	c := &Client{
		router: via, peers: own, onKeepalive: cfg.Heard, roster: cfg.Roster, logger: cfg.Logger, host: cfg.Host, bootID: readBootID(), machine: machineID(cfg), started: hostinfo.BootTime(), timeout: cfg.OpTimeout,
		noDelay: cfg.NoLockDelay, versions: cfg.Versions, slots: make(chan int, inFlight), active: newActiveSession(),
		keepaliveDue: make(chan struct{}, 1), stopped: make(chan struct{}), leaving: make(chan struct{}),
		number: rand.Uint64(), waitsQuestion: newWaitsQuestion(), leases: lease.NewCache(), leaseBegun: make(chan struct{}, 1),
		locked: make(chan struct{}, 1), returned: make(chan struct{}), settled: make(chan struct{}),
	}
	c.waits, c.changes = newLockWaits(c.waitsQuestion), newChangeWaits(c.waitsQuestion)
	via.ReportDetours(c.noteDetour)
	c.watchdogDeadline.Store(new(time.Now().Add(c.timeout)))
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.alive, c.rest = context.WithCancel(c.ctx)
	for slot := range inFlight {
		c.slots <- slot
	}
	if cfg.Inherited != nil {
		return c, c.resume(ctx, cfg, near)
	}
	var left *journalState
	var others []*journal
	var err error
	if c.journal, left, others, err = openJournal(cfg.SessionFile, c.bootID); err != nil {
		return nil, err
	}
	c.cluster = &clusterBinding{id: cmp.Or(left.cluster, cfg.cluster), onRebind: c.rebind, logger: c.logger}
	c.journal.bind(c.cluster.get())
	var session *clientSession
	if c.holders, err = newHolders(c.ctx, c, c.host, c.bootID, c.logger); err == nil {
		session, err = c.begin(ctx, left)
	}
	for _, other := range others {
		if err == nil {
			err = other.discard() // nothing in it is pending any more
		}
		err = errors.Join(err, other.letGo())
	}
	if err != nil {
		c.cancel()
		if c.holders != nil {
			err = errors.Join(err, c.holders.close())
		}
		if left.session == 0 {
			err = errors.Join(err, c.journal.discard())
		} else if c.cluster.sawForeign() {
			err = fmt.Errorf("%w; if the cluster that this mount was of is gone for good, remove %s", err, cfg.SessionFile)
		}
		return nil, errors.Join(err, c.journal.close())
	}
	c.active.set(nil, session)
	c.follow(near)
	go c.keepAlive()
	go c.keepLeases()
	go c.followWaits()
	c.holders.run()
	return c, nil
}

// Attach has a client that was dialed go on through the voter of this process, which was not there yet, as if [Open] had opened it. Calls that
// others have not answered yet are asked again. It is to be called once.
func (c *Client) Attach(near Voter, peers *rpc.Peers) {
	c.before.Store(new(c.router.AnyNode()))
	c.router.Attach(peers, near)
	c.follow(near)
	close(c.settled)
	time.AfterFunc(2*removalsRetry, c.peers.Close) // see FollowRemovals
}

// follow goes by what a voter knows; nil: there is none.
func (c *Client) follow(near Voter) {
	if near != nil {
		c.local.Store(&near)
		go near.FollowLeader(c.ctx, c.router.SetLeader)
	}
}

// resume is for a client that goes on with the session of a process before it.
func (c *Client) resume(ctx context.Context, cfg Config, near Voter) error {
	session, left, err := c.inherit(cfg.Inherited)
	if err == nil {
		c.holders, err = newHolders(c.ctx, c, c.host, c.bootID, c.logger)
	}
	if err != nil {
		c.cancel()
		return err
	}
	c.active.set(nil, session)
	c.settleLeft(session, left)
	if cfg.Begun != nil {
		cfg.Begun(c)
	}
	c.confirm(ctx, session)
	c.settling.begin(func() { c.tellVersions(session.id) })
	c.follow(near)
	go c.keepAlive()
	go c.keepLeases()
	go c.followWaits()
	c.holders.run()
	c.awaitLeft(ctx)
	return nil
}

// awaitLeft waits until nothing that a killed process had under way can be done or taken back any more: who is told that it failed may look
// at once whether it was done.
func (c *Client) awaitLeft(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.abandoned.cancelUntilDone(ctx, c.ctx.Done()); err != nil {
		c.logger.Warn("what the process before had under way is not settled yet", "error", err)
	}
}

// confirm renews a session before anything is asked in it, or hears that it has ended. Should nobody answer, calls wait until
// somebody does, and fail as when the cluster is silent.
func (c *Client) confirm(ctx context.Context, session *clientSession) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for {
		wait := c.renew(ctx, session)
		if s, _ := c.active.get(); s == nil || !s.expiredLocally() || pause.For(ctx, wait) != nil {
			return
		}
	}
}

// begin settles the calls that an earlier process had under way, if there was one, for nobody was told their results, and
// takes its session over. Only then: what the process had locked goes with that, so nothing of it may come later.
func (c *Client) begin(ctx context.Context, left *journalState) (*clientSession, error) {
	var session *clientSession
	var err error
	for _, call := range left.pending {
		if err := c.cancelCall(ctx, call.callNumber); err != nil {
			return nil, err
		}
	}
	if left.session != 0 {
		session, err = c.open(ctx, left.session, sequenceAfter(left.last, c.started))
		if err == nil {
			c.logger.Info("took over the session of an earlier process", "session", session.id, "unsettled", len(left.pending))
		} else if refused := new(rpc.RefusedError); !errors.As(err, &refused) {
			return nil, err
		}
	}
	if session == nil {
		if session, err = c.openFirst(ctx); err != nil {
			return nil, err
		}
	}
	for slot := range inFlight {
		c.journal.end(slot)
	}
	return session, nil
}

// openFirst opens the first session. A host that crashed and booted again soon has to wait until the session ends that it had before. A
// session that ended before anyone heard that it had been opened was no use, and is followed by another.
func (c *Client) openFirst(ctx context.Context) (*clientSession, error) {
	for warned := false; ; {
		session, err := c.open(ctx, newSessionID(), newSequence(0))
		refused := new(rpc.RefusedError)
		switch {
		case !errors.As(err, &refused):
			return session, err
		case refused.Result.GetCode() == storepb.Code_SESSION_UNKNOWN:
			c.logger.Warn("a session was opened and ended before this mount heard of it; opening another")
			continue
		case refused.Result.GetCode() != storepb.Code_BUSY:
			return nil, err
		}
		if !warned {
			c.logger.Warn("waiting", "error", err)
			warned = true
		}
		if pause.For(ctx, reopenPause) != nil {
			return nil, err
		}
	}
}
