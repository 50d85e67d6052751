package session

import (
	"context"
	"errors"
	"os"
	"slices"

	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
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
	c.journal.word(journalWaits).Store(0) // whatever had no room there is over
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
	left.waits = c.journal.readWaits()
	if left.session == 0 || c.journal.lacksWaits() {
		return nil, nil, errors.New("nobody can go on with what the session file says")
	}
	c.cluster = &affiliation{id: left.cluster, moved: c.moved, logger: c.logger}
	c.journal.adoptWaits()
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
	session = &clientSession{id: left.session, numbers: numbersAfter(left.last, c.started)}
	for _, call := range left.pending {
		if call.session == session.id {
			session.numbers.reopen(call.seq)
		}
	}
	return session, left, nil
}

// settleLeft settles what a process that was killed had under way, before anything else begins: nobody was told the results. Who waited
// for a lock asks anew; until then the request keeps its place for a moment.
func (c *Client) settleLeft(session *clientSession, left *journalState) {
	for _, call := range left.pending {
		in := session
		if call.session != session.id { // one that ended before
			in = &clientSession{id: call.session, numbers: newNumbers(call.seq)}
		}
		givenUp := c.unsettled.begin(true)
		c.settling.begin(func() { c.settle(in, call.seq, call.slot, givenUp) })
	}
	if len(left.waits) > 0 {
		givenUp := c.unsettled.begin(false)
		c.settling.begin(func() { c.interruptLeft(session, left.waits, givenUp) })
	}
}

// interruptLeft tells the cluster that nobody waits any more, until it knows.
func (c *Client) interruptLeft(session *clientSession, waits []*storepb.AwaitLock, call *givenUp) {
	var slot int
	select {
	case slot = <-c.slots:
	case <-c.ctx.Done():
		return // the next process does it
	}
	for _, wait := range waits {
		if ids.Session(wait.GetSession()) != session.id {
			c.journal.endWait(ids.Session(wait.GetSession()), ids.Sequence(wait.GetSeq()))
			continue // it ended with that
		}
		op := &storepb.Op{Op: &storepb.Op_InterruptLock{InterruptLock: interruptOf(wait)}}
		seq, acked := session.numbers.take(func(seq ids.Sequence) { c.journal.begin(slot, session.id, seq) })
		command := &storepb.Command{
			Session: uint64(session.id), Seq: uint64(seq), Acked: uint64(acked), Caller: &storepb.Caller{Host: c.host}, Op: op,
		}
		for !c.isDone(command) {
			if pause.For(c.ctx, reopenPause) != nil {
				return // the next process does it
			}
		}
		c.journal.endWait(ids.Session(wait.GetSession()), ids.Sequence(wait.GetSeq()))
		session.numbers.done(seq)
	}
	c.unsettled.end(call)
	c.journal.end(slot)
	c.slots <- slot
}

// isDone sends a command, and tells whether it is done, or never will be since its session has ended.
func (c *Client) isDone(command *storepb.Command) bool {
	result, err := c.send(c.ctx, command)
	return err == nil && result.GetCode() != storepb.Code_TOO_MANY_REQUESTS
}
