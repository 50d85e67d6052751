package session

import (
	"context"
	"errors"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// questionPause is the pause between two questions because of added waits. Waits may come in bursts, and the
// reply for all waits of a session may be long.
const questionPause = 50 * time.Millisecond

// errOutdated means: a newer question replaces this one.
var errOutdated = errors.New("the question is out of date")

func (c *Client) followWaits() {
	for {
		select {
		case <-c.waitsQuestion.begun:
		case <-c.alive.Done():
			return
		}
		failing := failures{what: "waits", logger: c.logger}
		var of ids.Session
		var told ids.Index // last command which the reports cover
		for c.alive.Err() == nil && (!c.waits.areNone() || !c.changes.areNone()) {
			session := c.lastSession()
			c.waits.endOthers(session)
			if session != of {
				of, told = session, 0
			}
			select {
			case <-c.waitsQuestion.outdated:
			default:
			}
			after, newest := c.waits.ask(told)
			req := &clusterpb.EndedWaitsRequest{Session: uint64(session), After: uint64(after)}
			c.changes.ask(req)
			reply, err := c.askWaits(req)
			if err != nil {
				c.waits.again(after)
				c.changes.again(req)
			}
			switch {
			case errors.Is(err, errOutdated):
			case err != nil:
				failing.note(err)
				_ = pause.For(c.alive, reopenPause)
			default:
				failing.end()
				c.waits.tell(session, newest, reply)
				c.changes.tell(reply)
				told = ids.Index(reply.GetIndex())
				if reply.GetWhole() && c.waits.wantsWhole() {
					_ = pause.For(c.alive, questionPause)
				}
			}
		}
	}
}

// askWaits asks the leader once. It abandons an outdated question, which the leader ends when the next one
// comes.
func (c *Client) askWaits(req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	type answer struct {
		reply *clusterpb.EndedWaitsReply
		err   error
	}
	answered := make(chan answer, 1)
	ctx, cancel := context.WithTimeout(c.alive, rpc.AttemptTimeout)
	go func() {
		defer cancel()
		reply, err := rpc.Ask(ctx, c.router, rpc.Node.EndedWaits, req)
		answered <- answer{reply, err}
	}()
	earliest := time.After(questionPause)
	outdated := c.waitsQuestion.outdated
	if req.GetAfter() == 0 {
		outdated = nil // the leader replies at once
	}
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-outdated:
	}
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-earliest:
		return nil, errOutdated
	}
}

// NameChanged returns a channel, closed when the lock of a name may have changed since a command, ended or
// become stale. end ends the wait.
func (c *Client) NameChanged(name *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func()) {
	return c.changes.addName(namespace.KeyOfName(ids.Inode(name.GetParent()), name.GetName()), since)
}

// EventsAfter returns a channel, closed when there may be an event after a number. end ends the wait.
func (c *Client) EventsAfter(number uint64) (there <-chan struct{}, end func()) {
	return c.changes.addEvent(number)
}

// StateAfter returns the last known command, and a channel, closed when the client knows a command after
// index. The channel closes at most once a second. end ends the wait.
func (c *Client) StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func()) {
	return c.changes.addState(index)
}
