package session

import (
	"context"
	"fmt"
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

// awaitActive returns a session which cannot have expired, and waits for one if necessary.
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

// Session returns the session in use, for advisory locks. It first makes sure the session has not expired, as
// after sleep or a partition. It returns 0 if there is no confirmation in time, and once this client ends the
// session.
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

// lastSession returns the session in use without waiting. The session may have expired.
func (c *Client) lastSession() ids.Session {
	if session, _ := c.active.get(); session != nil {
		return session.id
	}
	return 0
}

// Remaining returns how long the session in use lasts without another keepalive; 0: there is none.
func (c *Client) Remaining() time.Duration {
	s, _ := c.active.get()
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.until-hostinfo.BootTime(), 0)
}
