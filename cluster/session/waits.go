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

// questionPause is between two questions that are asked because waits were added: many may be added one after the other, and the answer for all
// waits of a session may be long.
const questionPause = 50 * time.Millisecond

// errOutdated says that a question was put aside for a newer one.
var errOutdated = errors.New("the question is out of date")

// followWaits asks for the ends of waits while there are some.
func (c *Client) followWaits() {
	for {
		select {
		case <-c.waitsQuestion.begun:
		case <-c.alive.Done():
			return
		}
		failing := failures{what: "waits", logger: c.logger}
		var of ids.Session
		var told ids.Index // up to which command the leader has told of ends
		for c.alive.Err() == nil && !(c.waits.areNone() && c.changes.areNone()) {
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

// askWaits asks the leader once. A question that the leader keeps and that becomes out of date is left to itself, and its answer dropped; the
// leader ends it when the next question comes.
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
		outdated = nil // the leader answers at once
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

// NameChanged returns a channel that is closed once a name may be another lock than in the state after a command, or none any more, or stale. end
// ends the wait.
func (c *Client) NameChanged(name *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func()) {
	return c.changes.addName(namespace.KeyOfName(ids.Inode(name.GetParent()), name.GetName()), since)
}

// EventsAfter returns a channel that is closed once there may be an event after a number. end ends the wait.
func (c *Client) EventsAfter(number uint64) (there <-chan struct{}, end func()) {
	return c.changes.addEvent(number)
}

// StateAfter returns the last command of which this client knows, and a channel that is closed once it knows of a command after index, which it
// is told of once a second. end ends the wait.
func (c *Client) StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func()) {
	return c.changes.addState(index)
}
