package session

import (
	"context"
	"time"

	"lockfs/formats/pause"
)

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
		s, _ := c.current.get()
		if s == nil {
			c.reopen()
			continue
		}
		wait = c.renew(s)
	}
}

// reopen opens a session in place of one that was lost, and tries until it has one.
func (c *Client) reopen() {
	for c.alive.Err() == nil {
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
