package session

import (
	"context"
	"errors"
	"fmt"

	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// Open opens a session through the voter of this process, which knows other nodes by their addresses. It waits for a leader
// until ctx ends.
func Open(ctx context.Context, near Voter, peers *rpc.Peers, cfg Config) (*Client, error) {
	return openClient(ctx, near, rpc.NewRouter(peers, near), nil, cfg)
}

// Dial opens a session through the servers with these addresses. It waits for a leader until ctx ends.
func Dial(ctx context.Context, servers []string, cfg Config) (*Client, error) {
	peers := rpc.NewPeers(cfg.Security)
	client, err := openClient(ctx, nil, rpc.NewRoamingRouter(peers, peers.Nodes(servers)...), peers, cfg)
	if err != nil {
		peers.Close()
	}
	return client, err
}

func openClient(ctx context.Context, near Voter, via *rpc.Router, own *rpc.Peers, cfg Config) (*Client, error) {
	if cfg.OpTimeout == 0 {
		cfg.OpTimeout = DefaultOpTimeout
	}
	c := &Client{
		router: via, near: near, peers: own, heard: cfg.Heard, logger: cfg.Logger, host: cfg.Host, bootID: readBootID(), machine: machineID(cfg), started: hostinfo.BootTime(), timeout: cfg.OpTimeout,
		noDelay: cfg.NoLockDelay, slots: make(chan int, inFlight), current: newCurrent(),
		hurried: make(chan struct{}, 1), stopped: make(chan struct{}), leaving: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.alive, c.rest = context.WithCancel(c.ctx)
	for slot := range inFlight {
		c.slots <- slot
	}
	var left *journalState
	var others []*journal
	var err error
	if c.journal, left, others, err = openJournal(cfg.SessionFile, c.bootID); err != nil {
		return nil, err
	}
	c.cluster = &affiliation{id: left.cluster, moved: c.moved, logger: c.logger}
	c.journal.belong(left.cluster)
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
		} else if c.cluster.metOthers() {
			err = fmt.Errorf("%w; if the cluster that this mount was of is gone for good, remove %s", err, cfg.SessionFile)
		}
		return nil, errors.Join(err, c.journal.close())
	}
	c.current.set(nil, session)
	go c.keepAlive()
	c.holders.run()
	return c, nil
}

// begin settles the calls that an earlier process had under way, if there was one, for nobody was told their results, and
// takes its session over. Only then: what the process had locked goes with that, so nothing of it may come later.
func (c *Client) begin(ctx context.Context, left *journalState) (*clientSession, error) {
	var session *clientSession
	var err error
	for _, call := range left.pending {
		if err := c.void(ctx, call); err != nil {
			return nil, err
		}
	}
	if left.session != 0 {
		session, err = c.open(ctx, left.session, newNumbers(left.last))
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
		if pause.For(ctx, reopenPause) != nil {
			return nil, err
		}
	}
}
