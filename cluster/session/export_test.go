package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// What the tests with a cluster see of a client.

// ErrForgotten is what they compare with.
var ErrForgotten = errForgotten

// Hurry makes the next keepalive come now.
func (c *Client) Hurry() { c.keepaliveNow() }

// MoveOffset says that this host's clock is wrong.
func (c *Client) MoveOffset(offset time.Duration) { c.offset.Store(int64(offset)) }

// MeasuredOffset is how far this host's clock was ahead when a keepalive was answered.
func (c *Client) MeasuredOffset() time.Duration { return time.Duration(c.offset.Load()) }

// LivesUntil is until when the client relies on the session in use, by hostinfo.BootTime.
func (c *Client) LivesUntil() time.Duration {
	session, _ := c.active.get()
	session.mu.Lock()
	defer session.mu.Unlock()
	return session.until
}

// ClearLeases gives up what is leased to the client, and Leased is in which generation anything is; 0: nothing is.
func (c *Client) ClearLeases() { c.leases.Clear() }

func (c *Client) Leased() uint64 {
	_, generation, isUsed := c.leases.Lease(hostinfo.BootTime())
	if !isUsed {
		return 0
	}
	return generation
}

// Oversleep has this host have slept until the cluster may have given the session in use up.
func (c *Client) Oversleep() {
	session, _ := c.active.get()
	session.mu.Lock()
	defer session.mu.Unlock()
	session.until = 0
}

// Probed is the voter that the client probes; empty: nobody.
func (c *Client) Probed() string {
	c.voterProbe.mu.Lock()
	defer c.voterProbe.mu.Unlock()
	if c.voterProbe.node == nil {
		return ""
	}
	return c.voterProbe.id
}

// Fall silent: no keepalive comes any more.
func (c *Client) FallSilent() { c.cancel() }

// IsFenced tells whether the cluster may have given up the session in use.
func (c *Client) IsFenced() bool {
	session, _ := c.active.get()
	return session.expiredLocally()
}

// EndSession ends the session in use behind the client's back.
func (c *Client) EndSession(t testing.TB) {
	end := &storepb.Op{Op: &storepb.Op_CloseSession{CloseSession: &storepb.CloseSession{}}}
	_, err := c.send(t.Context(), &storepb.Command{Session: uint64(c.Session()), Op: end})
	require.NoError(t, err)
}

// BeginUntold does a call as far as to where the result would be passed on.
func (c *Client) BeginUntold(t testing.TB, op *storepb.Op) {
	session, err := c.awaitActive(t.Context())
	require.NoError(t, err)
	seq, acked := session.numbers.take(func(seq ids.Sequence) { c.journal.begin(7, session.id, seq) })
	result, err := c.send(context.WithoutCancel(t.Context()), &storepb.Command{
		Session: uint64(session.id), Seq: uint64(seq), Acked: uint64(acked), Caller: &storepb.Caller{}, Op: op,
	})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
}

// Die ends as a process does that is killed.
func (c *Client) Die(t testing.TB) {
	c.cancel()
	require.NoError(t, c.journal.close())
}

// StandStill is for a host that stands still, with all of its clocks, until the cluster has ended its session.
func (c *Client) StandStill(t testing.TB, pause time.Duration, ended func(ids.Session)) {
	before, _ := c.active.get()
	id := newSessionID() // nobody keeps it alive
	require.NoError(t, c.propose(t.Context(), id, false))
	ended(id)
	c.ahead.Add(-int64(pause))
	c.offset.Add(int64(pause))
	require.True(t, c.active.set(before, &clientSession{id: id, numbers: newSequence(0), until: hostinfo.BootTime() + time.Minute}))
}
