package session

import (
	"context"
	"fmt"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

// awaitActive answers a session that the cluster has surely not given up yet, and waits for one if need be.
func (c *Client) awaitActive(ctx context.Context) (*clientSession, error) {
	for {
		s, changed := c.active.get()
		if s != nil && !s.expiredLocally() {
			return s, nil
		}
		if s != nil {
			c.keepaliveNow()
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

// Session is the session in use, in which advisory locks are taken, once it is sure that the cluster has not
// given it up: this host may have been cut off or asleep. It is 0 if that cannot be told in time, and once this client ends it.
func (c *Client) Session() ids.Session {
	if c.left.Load() {
		return 0
	}
	if session, _ := c.active.get(); session != nil && !session.expiredLocally() {
		return session.id
	}
	if c.checkAvailable(anyRequest) != nil {
		return 0
	}
	ctx, cancel := c.withTimeout(context.Background(), anyRequest)
	defer cancel()
	session, err := c.awaitActive(ctx)
	if err != nil {
		return 0
	}
	return session.id
}

// lastSession is Session at once: it may have been given up.
func (c *Client) lastSession() ids.Session {
	if session, _ := c.active.get(); session != nil {
		return session.id
	}
	return 0
}

// Remaining is for how long the session in use lasts if the cluster does not confirm it again; 0 if there is none.
func (c *Client) Remaining() time.Duration {
	s, _ := c.active.get()
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.until-hostinfo.BootTime(), 0)
}
