package session

import (
	"context"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
)

func (c *Client) keepAlive() {
	defer close(c.stopped)
	wait := firstKeepalive
	for {
		c.watchdogDeadline.Store(new(time.Now().Add(wait + rpc.AttemptTimeout)))
		select {
		case <-time.After(wait):
		case <-c.keepaliveDue:
		case <-c.alive.Done():
			return
		}
		s, _ := c.active.get()
		if s == nil {
			c.reopen()
			continue
		}
		wait = c.renew(c.alive, s)
	}
}

// WatchdogDeadline returns when the keepalive loop has to start its next round, with or without replies.
func (c *Client) WatchdogDeadline() time.Time { return *c.watchdogDeadline.Load() }

// reopen replaces a lost session, and retries until it succeeds.
func (c *Client) reopen() {
	for c.alive.Err() == nil {
		c.watchdogDeadline.Store(new(time.Now().Add(c.timeout + reopenPause)))
		ctx, cancel := context.WithTimeout(c.alive, c.timeout)
		s, err := c.open(ctx, newSessionID(), newSequence(0))
		cancel()
		if err == nil {
			c.active.set(nil, s)
			c.holders.lookNow()
			return
		}
		c.logger.Error("no session could be opened; trying again", "error", err)
		_ = pause.For(c.alive, reopenPause)
	}
}
