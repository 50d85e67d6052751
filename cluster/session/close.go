package session

import (
	"context"
	"errors"
	"fmt"

	"lockfs/raftstore/storepb"
)

// Close is Leave where no program relies on anything any more.
func (c *Client) Close(ctx context.Context) error {
	return c.Leave(ctx, func() bool { return false })
}

// Leave ends the session. Nothing more begins; what is under way or unsettled, and its own farewell, have until ctx ends;
// a successor can take over what could not be said. inUse is asked at the last moment whether programs may go on relying on
// what they have: their advisory locks wait for the lock delay then.
func (c *Client) Leave(ctx context.Context, inUse func() bool) error {
	c.leave.Do(func() { close(c.leaving) })
	err := c.finishCalls(ctx)
	c.rest() // a keepalive after the farewell would hear that the session has ended, and another one would be opened
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

// finishCalls waits for the calls under way, and for those given up to be settled: after the farewell nobody could learn
// what became of them. Their slots are not given back.
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
