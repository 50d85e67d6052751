package session

import (
	"context"
	"errors"
	"fmt"

	"lockfs/raftstore/storepb"
)

// Close is Leave for a client without programs in need of its locks.
func (c *Client) Close(ctx context.Context) error {
	return c.Leave(ctx, func() bool { return false })
}

// Leave ends the session. No new call begins. Calls in progress, cancellations and the final CloseSession
// have until ctx ends; a later process can take over the rest. Leave calls inUse last: if programs may
// continue to rely on their advisory locks, the locks wait for the lock delay.
func (c *Client) Leave(ctx context.Context, inUse func() bool) error {
	c.leave.Do(func() { close(c.leaving) })
	err := c.finishCalls(ctx)
	c.rest() // a later keepalive would find the session closed, and open another
	<-c.stopped
	<-c.returned
	if err == nil {
		used := inUse()
		c.left.Store(true)
		err = c.closeSession(ctx, used)
	}
	c.cancel()
	err = errors.Join(err, c.holders.close())
	if err == nil {
		err = c.journal.discard()
	}
	c.settling.end()
	if c.peers != nil {
		c.peers.Close()
	}
	return errors.Join(err, c.journal.close())
}

// finishCalls waits for calls in progress and for cancellations. After the session's end their outcome would
// be unknown. finishCalls keeps their slots.
func (c *Client) finishCalls(ctx context.Context) error {
	for range inFlight {
		select {
		case <-c.slots:
		case <-ctx.Done():
			return fmt.Errorf("calls are under way: %w", ctx.Err())
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return nil
}

func (c *Client) closeSession(ctx context.Context, inUse bool) error {
	session, _ := c.active.get()
	if session == nil {
		return nil
	}
	op := &storepb.Op{Op: &storepb.Op_CloseSession{CloseSession: &storepb.CloseSession{InUse: inUse}}}
	if _, err := c.send(ctx, &storepb.Command{Session: uint64(session.id), Op: op}); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}
