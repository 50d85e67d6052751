package session

import (
	"context"
	"fmt"
)

// patience gives a call its time.
func (c *Client) patience(ctx context.Context, what asked) (context.Context, context.CancelFunc) {
	since, confirmed := c.silence.heard(), c.current.confirmations()
	return withPatience(ctx, c.timeout, func() {
		if c.current.endured(confirmed) {
			c.logger.Warn("the session is not confirmed; changes fail at once until one is", "after", c.timeout)
		}
		if c.silence.endured(since, what) {
			c.logger.Warn("the cluster does not answer; calls fail at once until it does", "after", c.timeout)
			c.hurry()
		}
	})
}

// answered notes an answer that a majority stands behind.
func (c *Client) answered(what asked) {
	if c.silence.answered(what) {
		c.logger.Info("the cluster answers again")
	}
}

// mayAsk is an error, which wraps context.DeadlineExceeded, while a call has nothing to hope for. That commands are
// not answered counts for as long as one is asked again in the background: else nobody would notice that they are. They need a
// session, too, which is asked for all the time.
func (c *Client) mayAsk(what asked) error {
	if what == aCommand && c.current.isHopeless() {
		return fmt.Errorf("the session is not confirmed: %w", context.DeadlineExceeded)
	}
	if c.silence.of(anything) || what == aCommand && c.silence.of(aCommand) && c.unsettled.any() {
		return fmt.Errorf("the cluster does not answer: %w", context.DeadlineExceeded)
	}
	return nil
}

// Await waits for what a keepalive brings, as long as for an answer. An error wraps context.DeadlineExceeded (see Create), or why ctx has ended.
func (c *Client) Await(ctx context.Context, heard <-chan struct{}) error {
	select {
	case <-heard:
		return nil
	default:
	}
	if err := c.mayAsk(anything); err != nil {
		return err
	}
	ctx, cancel := c.patience(ctx, anything)
	defer cancel()
	c.hurry()
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// hurry makes the next keepalive come now.
func (c *Client) hurry() {
	select {
	case c.hurried <- struct{}{}:
	default:
	}
}
