package session

import (
	"context"
	"errors"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/hostinfo"
)

// firstKeepalive is the interval of keepalives before the TTL is known.
const firstKeepalive = 100 * time.Millisecond

// attemptsInTTL is the number of keepalive attempts within the TTL.
const attemptsInTTL = 6

// renew sends a keepalive and returns the time until the next one. ctx ends with the keepalives.
func (c *Client) renew(ctx context.Context, s *clientSession) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	if ttl := time.Duration(c.ttl.Load()); ttl != 0 { // a lost attempt leaves time for others, on other routes
		ctx = rpc.WithAttemptTime(ctx, ttl/attemptsInTTL)
	}
	var sent time.Duration
	var asked time.Time
	var took time.Duration
	keepAlive := func(to rpc.Node, ctx context.Context, req *clusterpb.KeepAliveRequest) (*clusterpb.KeepAliveReply, error) {
		sent, asked = hostinfo.BootTime(), time.Now()
		in := c.cluster.get()
		req.Cluster = in
		reply, err := to.KeepAlive(ctx, req)
		took = time.Since(asked)
		if err == nil {
			err = c.cluster.check(in, reply.GetOutcome(), reply.GetCluster())
		}
		return reply, err
	}
	request := &clusterpb.KeepAliveRequest{Session: uint64(s.id), ClockOffset: c.offset.Load(), Program: c.program}
	if c.roster != nil {
		request.Roster = c.roster()
	}
	reply, err := rpc.Ask(ctx, c.router, keepAlive, request)
	if err != nil {
		c.logger.Warn("no keepalive came through", "session", s.id, "error", err)
		if refused := new(rpc.RefusedError); errors.As(err, &refused) {
			return reopenPause
		}
		return firstKeepalive
	}
	c.recordReply(anyRequest)
	if c.onKeepalive != nil {
		c.onKeepalive(reply)
	}
	if reply.GetEnded() {
		c.lose(s)
		return 0
	}
	c.ahead.Store(reply.GetClusterTime() - int64(sent))
	c.took.Store(int64(took))
	c.offset.Store(wallClock(asked.Add(took/2)) - reply.GetClusterTime())
	c.router.SetMembers(reply.GetServers())
	if voters := reply.GetVoters(); voters != 0 {
		c.voters.Store(voters)
	}
	c.leader.Store(new(reply.GetLeader()))
	c.givesLeases.Store(reply.GetLeases())
	c.runsAt.Store(reply.GetClusterVersion())
	ttl := time.Duration(reply.GetTtl())
	c.ttl.Store(int64(ttl))
	s.extend(sent + ttl - margin(ttl))
	c.active.wake()
	return ttl / 3
}

// lose gives up a session which the cluster has ended.
func (c *Client) lose(s *clientSession) {
	if c.active.set(s, nil) {
		c.logger.Warn("the cluster ended this mount's session; opening another", "session", s.id)
		c.leases.Clear()
		notify(c.waitsQuestion.outdated)
		c.keepaliveNow()
	}
}
