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

// Open opens a session through the voter of this process, which knows the addresses of other nodes. It waits
// for a leader until ctx ends.
func Open(ctx context.Context, near Voter, peers *rpc.Peers, cfg Config) (*Client, error) {
	return openClient(ctx, near, rpc.NewRouter(peers, near), nil, cfg)
}

// Dial opens a session through servers with these addresses. It waits for a leader until ctx ends. With
// Config.Inherited it waits at most OpTimeout, and returns a client even without a leader.
func Dial(ctx context.Context, servers []string, cfg Config) (*Client, error) {
	peers := rpc.NewPeers(cfg.Security)
	cfg.setDefaults()
	var client *Client
	var err error
	if cfg.Inherited == nil { // else the cluster may be unavailable, and programs wait for errors
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
		noDelay: cfg.NoLockDelay, versions: cfg.Versions, program: cfg.Program, slots: make(chan int, inFlight), active: newActiveSession(),
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
			err = other.discard() // no pending call is left in it
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

// Attach switches a dialed client to the voter of this process, as if [Open] had opened it. It repeats calls
// in progress. Call it at most once, after the start of the voter.
func (c *Client) Attach(near Voter, peers *rpc.Peers) {
	c.before.Store(new(c.router.AnyNode()))
	c.router.Attach(peers, near)
	c.follow(near)
	close(c.settled)
	time.AfterFunc(2*removalsRetry, c.peers.Close) // see FollowRemovals
}

// follow uses a voter's knowledge of the leader; nil: there is none.
func (c *Client) follow(near Voter) {
	if near != nil {
		c.local.Store(&near)
		go near.FollowLeader(c.ctx, c.router.SetLeader)
	}
}

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

// awaitLeft waits until no call of a killed process can change anything. Programs whose calls failed with the
// process may check the outcome at once.
func (c *Client) awaitLeft(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.abandoned.cancelUntilDone(ctx, c.ctx.Done()); err != nil {
		c.logger.Warn("calls of the previous process are not settled yet", "error", err)
	}
}

// confirm renews a session before its first call, or detects its end. It gives up after the timeout of a
// call: calls then wait and fail as in an unavailable cluster.
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

// begin cancels the pending calls of an earlier process: no program got their results. It then takes over the
// session. The order matters: the takeover releases the earlier process's locks, and no late call may acquire
// any.
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

// openFirst opens the first session. After a crash and a quick boot, the host has to wait for the end of its
// old session. If the new session ends before its first reply, openFirst opens another.
func (c *Client) openFirst(ctx context.Context) (*clientSession, error) {
	for warned := false; ; {
		session, err := c.open(ctx, newSessionID(), newSequence(0))
		refused := new(rpc.RefusedError)
		switch {
		case !errors.As(err, &refused):
			return session, err
		case refused.Result.GetCode() == storepb.Code_SESSION_UNKNOWN:
			c.logger.Warn("a session ended before this mount knew of it; opening another")
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
