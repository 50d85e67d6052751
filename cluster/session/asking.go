package session

import (
	"context"
	"fmt"
)

// withTimeout adds the timeout of a call, and marks the cluster unavailable when it elapses.
func (c *Client) withTimeout(ctx context.Context, what requestKind) (context.Context, context.CancelFunc) {
	since, confirmed := c.availability.replies(), c.active.confirmations()
	return withRuntimeTimeout(ctx, c.timeout, func() {
		if c.active.markUnconfirmed(confirmed) {
			c.logger.Warn("the session is not confirmed; changes fail at once until one is", "after", c.timeout)
		}
		if c.availability.markUnavailable(since, what) {
			c.logger.Warn("the cluster does not answer; calls fail at once until it does", "after", c.timeout)
			c.keepaliveNow()
		}
	})
}

// recordReply records a reply confirmed by a quorum.
func (c *Client) recordReply(what requestKind) {
	if c.availability.recordReply(what) {
		c.logger.Info("the cluster answers again")
	}
}

// checkAvailable returns an error wrapping context.DeadlineExceeded while calls cannot succeed. Commands
// without replies count only while a background task retries one: otherwise no call would notice a recovery.
// Commands also need a session; the keepalive loop retries for one.
func (c *Client) checkAvailable(what requestKind) error {
	if what == commandRequest && c.active.isUnconfirmed() {
		return fmt.Errorf("the session is not confirmed: %w", context.DeadlineExceeded)
	}
	if c.availability.isUnavailable(anyRequest) || what == commandRequest && c.availability.isUnavailable(commandRequest) && c.abandoned.any() {
		return fmt.Errorf("the cluster does not answer: %w", context.DeadlineExceeded)
	}
	return nil
}

// AwaitUpdate waits for an update from a keepalive, at most the timeout of a call. An error wraps
// context.DeadlineExceeded (see Create), or is the error of ctx.
func (c *Client) AwaitUpdate(ctx context.Context, heard <-chan struct{}) error {
	select {
	case <-heard:
		return nil
	default:
	}
	if err := c.checkAvailable(anyRequest); err != nil {
		return err
	}
	ctx, cancel := c.withTimeout(ctx, anyRequest)
	defer cancel()
	c.keepaliveNow()
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (c *Client) keepaliveNow() {
	select {
	case c.keepaliveDue <- struct{}{}:
	default:
	}
}
