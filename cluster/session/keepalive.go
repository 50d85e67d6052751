package session

import (
	"context"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
)

// keepAlive renews the session until the client is about to end it.
func (c *Client) keepAlive() {
	defer close(c.stopped)
	wait := firstKeepalive
	for {
		c.roundDue.Store(new(time.Now().Add(wait + rpc.AttemptTimeout)))
		select {
		case <-time.After(wait):
		case <-c.hurried:
		case <-c.alive.Done():
			return
		}
		s, _ := c.current.get()
		if s == nil {
			c.reopen()
			continue
		}
		wait = c.renew(c.alive, s)
	}
}

// RoundDue is by when the loop that keeps the session alive is to begin anew, whether the cluster answers or not.
func (c *Client) RoundDue() time.Time { return *c.roundDue.Load() }

// reopen opens a session in place of one that was lost, and tries until it has one.
func (c *Client) reopen() {
	for c.alive.Err() == nil {
		c.roundDue.Store(new(time.Now().Add(c.timeout + reopenPause)))
		ctx, cancel := context.WithTimeout(c.alive, c.timeout)
		s, err := c.open(ctx, newSessionID(), newNumbers(0))
		cancel()
		if err == nil {
			c.current.set(nil, s)
			c.holders.lookNow()
			return
		}
		c.logger.Error("no session could be opened; trying again", "error", err)
		_ = pause.For(c.alive, reopenPause)
	}
}
