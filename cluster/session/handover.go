package session

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/formats/pause"
	"lockfs/raftstore/storepb"
)

// HandOver stops the client without ending the session, and returns the session file. Another process
// continues the session with it (Config.Inherited), with all open files and locks. HandOver waits until no
// call is in progress; if ctx ends before, the client continues. Make no calls during or after HandOver.
func (c *Client) HandOver(ctx context.Context) (*os.File, error) {
	if c.journal.file == nil {
		return nil, errors.New("there is no session file to hand over")
	}
	var taken []int
	for range inFlight {
		select {
		case slot := <-c.slots:
			taken = append(taken, slot)
		case <-ctx.Done():
			for slot := range slices.Values(taken) {
				c.slots <- slot
			}
			return nil, errors.New("calls are under way")
		}
	}
	c.journal.word(journalHanded).Store(1)
	c.rest()
	<-c.stopped
	<-c.returned // the next process begins without leases, and may change leased results
	c.cancel()
	c.settling.end()
	err := c.holders.close()
	if c.peers != nil {
		c.peers.Close()
	}
	if err != nil {
		c.logger.Warn("processes were not watched to the end; the next process asks for them", "error", err)
	}
	return c.journal.file, nil
}

// inherit continues the session of the previous process. If that was killed, it may have left calls in
// progress.
func (c *Client) inherit(journalFile *os.File) (session *clientSession, left *journalState, err error) {
	c.journal = &journal{file: journalFile}
	if err := c.journal.grow(); err != nil {
		return nil, nil, err
	}
	left = c.journal.read(c.bootID)
	if left.session == 0 {
		return nil, nil, errors.New("the session file has no session to continue")
	}
	c.cluster = &clusterBinding{id: left.cluster, onRebind: c.rebind, logger: c.logger}
	left.killed = c.journal.word(journalHanded).Swap(0) == 0
	kept, pending := c.journal.keepPromises(), make(map[int]bool)
	for _, call := range left.pending {
		pending[call.slot] = true
	}
	for range inFlight {
		if slot := <-c.slots; !kept[slot] && !pending[slot] {
			c.slots <- slot
		}
	}
	for slot := range kept { // reuse them last
		if !pending[slot] {
			c.slots <- slot
		}
	}
	session = &clientSession{id: left.session, numbers: sequenceAfter(left.last, c.started)}
	for _, call := range left.pending {
		if call.session == session.id {
			session.numbers.reopen(call.seq)
		}
	}
	return session, left, nil
}

// settleLeft cancels the pending calls of a killed process before any other call: no program got their
// results. Lock requests continue to wait. A program which repeats such a request adopts the existing one.
func (c *Client) settleLeft(session *clientSession, left *journalState) {
	for _, call := range left.pending {
		in := session
		if call.session != session.id { // of an earlier session
			in = &clientSession{id: call.session, numbers: newSequence(call.seq)}
		}
		givenUp := c.abandoned.begin(true)
		c.settling.begin(func() { c.cancelUntilDone(in, call.seq, call.slot, givenUp) })
	}
	if left.killed {
		c.waits.mayLeave.Store(true)
		before, finding := c.abandoned.list(), c.abandoned.begin(false)
		c.settling.begin(func() { c.findWaits(session, before, finding) })
	}
}

// leftWaitPatience is how long the lock request of a killed process waits for its program. The kernel repeats
// the program's call as soon as the mount is served again; after that no program needs the request.
const leftWaitPatience = 5 * time.Second

// findWaits asks the leader for the lock requests of a killed process, when no more can be added.
func (c *Client) findWaits(session *clientSession, before []*abandonedCall, finding *abandonedCall) {
	for _, call := range before {
		select {
		case <-call.settled:
		case <-c.ctx.Done():
			return // the next process continues
		}
	}
	for {
		answer := <-c.sendQuestion(&clusterpb.EndedWaitsRequest{Session: uint64(session.id)}).answered
		if answer.err == nil {
			c.waits.leave(answer.reply.GetWaiting())
			break
		}
		if pause.For(c.ctx, reopenPause) != nil {
			return // the next process continues
		}
	}
	c.abandoned.end(finding)
	if pause.For(c.ctx, leftWaitPatience) != nil {
		return
	}
	for _, request := range c.waits.abandon() {
		for c.ctx.Err() == nil && c.lastSession() == session.id {
			if _, err := c.InterruptLock(new(storepb.Caller), request); err == nil {
				break
			}
			_ = pause.For(c.ctx, reopenPause)
		}
	}
}
