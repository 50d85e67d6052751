package session

import (
	"context"
	"fmt"
)

// withTimeout gives a call its time.
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

// recordReply notes an answer that a majority stands behind.
func (c *Client) recordReply(what requestKind) {
	if c.availability.recordReply(what) {
		c.logger.Info("the cluster answers again")
	}
}

// checkAvailable is an error, which wraps context.DeadlineExceeded, while a call has nothing to hope for. That commands are
// not answered counts for as long as one is asked again in the background: else nobody would notice that they are. They need a
// session, too, which is asked for all the time.
func (c *Client) checkAvailable(what requestKind) error {
	if what == commandRequest && c.active.isUnconfirmed() {
		return fmt.Errorf("the session is not confirmed: %w", context.DeadlineExceeded)
	}
	if c.availability.isUnavailable(anyRequest) || what == commandRequest && c.availability.isUnavailable(commandRequest) && c.abandoned.any() {
		return fmt.Errorf("the cluster does not answer: %w", context.DeadlineExceeded)
	}
	return nil
}

// AwaitUpdate waits for what a keepalive brings, as long as for an answer. An error wraps context.DeadlineExceeded (see Create), or why ctx has ended.
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

// keepaliveNow makes the next keepalive come now.
func (c *Client) keepaliveNow() {
	select {
	case c.keepaliveDue <- struct{}{}:
	default:
	}
}
