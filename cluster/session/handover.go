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

// HandOver lets go of the session without ending it, and answers the session file, with which another process opens a client that goes on
// with it (Config.Inherited): nothing that was opened or locked in it is lost. Nothing may be asked of the client meanwhile or
// afterwards. It is done once no call is under way; if that does not come to be until ctx ends, the client goes on.
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
	<-c.returned // who goes on begins without leases, and may change what this client would answer
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

// inherit goes on with the session of the process before this one. If that was killed, calls of it may have been under way.
func (c *Client) inherit(journalFile *os.File) (session *clientSession, left *journalState, err error) {
	c.journal = &journal{file: journalFile}
	if err := c.journal.grow(); err != nil {
		return nil, nil, err
	}
	left = c.journal.read(c.bootID)
	if left.session == 0 {
		return nil, nil, errors.New("nobody can go on with what the session file says")
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
	for slot := range kept { // they are used last
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

// settleLeft settles the calls in progress of a killed process before anything else begins: no program was told the results. Requests for
// locks go on waiting: a program that asks for such a lock again waits for the existing request.
func (c *Client) settleLeft(session *clientSession, left *journalState) {
	for _, call := range left.pending {
		in := session
		if call.session != session.id { // one that ended before
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

// leftWaitPatience is how long a request that a killed process has left waits for the program to ask again, which the kernel has it do as soon
// as the mount is served. After that no program waits for it.
const leftWaitPatience = 5 * time.Second

// findWaits has the leader tell which requests for locks a killed process has left, once no command of it can add any.
func (c *Client) findWaits(session *clientSession, before []*abandonedCall, finding *abandonedCall) {
	for _, call := range before {
		select {
		case <-call.settled:
		case <-c.ctx.Done():
			return // the next process does it
		}
	}
	for {
		reply, err := c.askWaits(&clusterpb.EndedWaitsRequest{Session: uint64(session.id)})
		if err == nil {
			c.waits.leave(reply.GetWaiting())
			break
		}
		if pause.For(c.ctx, reopenPause) != nil {
			return // the next process does it
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
