package session

import (
	"context"
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

// askedWaits is a question under way.
type askedWaits struct {
	session  ids.Session
	newest   uint64 // newest lock wait in the question
	request  *clusterpb.EndedWaitsRequest
	answered chan answeredWaits // holds one element
	cancel   context.CancelFunc
}

type answeredWaits struct {
	reply *clusterpb.EndedWaitsReply
	err   error
}

func (c *Client) followWaits() {
	for {
		select {
		case <-c.waitsQuestion.begun:
		case <-c.alive.Done():
			return
		}
		failing := failures{what: "waits", logger: c.logger}
		var told toldWaits
		var before *askedWaits // replaced by the present question, and not answered yet
		for c.alive.Err() == nil && (!c.waits.areNone() || !c.changes.areNone()) {
			session := c.lastSession()
			c.waits.endOthers(session)
			select {
			case <-c.waitsQuestion.outdated:
			default:
			}
			after, newest := c.waits.ask(told.in(session))
			request := &clusterpb.EndedWaitsRequest{Session: uint64(session), After: uint64(after)}
			c.changes.ask(request)
			present := c.sendQuestion(request)
			present.session, present.newest = session, newest
			answer, isAnswered := c.awaitAnswer(present, before, &told)
			if !isAnswered || answer.err != nil {
				c.waits.again(after)
				c.changes.again(request)
			}
			switch {
			case !isAnswered:
				before = present
				continue
			case answer.err != nil:
				failing.note(answer.err)
				_ = pause.For(c.alive, reopenPause)
			default:
				failing.end()
				c.tellWaits(present, answer.reply, &told)
				// Mounts without a session replace each other's question.
				if session == 0 || answer.reply.GetWhole() && c.waits.wantsWhole() {
					_ = pause.For(c.alive, questionPause)
				}
			}
			before.drop()
			before = nil
		}
		before.drop()
	}
}

// toldWaits is the last command which the reports to a session cover.
type toldWaits struct {
	session ids.Session
	index   ids.Index
}

func (t *toldWaits) in(session ids.Session) ids.Index {
	if t.session != session {
		*t = toldWaits{session: session}
	}
	return t.index
}

func (c *Client) tellWaits(asked *askedWaits, reply *clusterpb.EndedWaitsReply, told *toldWaits) {
	c.waits.tell(asked.session, asked.newest, reply)
	c.changes.tell(reply)
	if told.session == asked.session {
		told.index = ids.Index(reply.GetIndex())
	}
}

// awaitAnswer waits for the answer to the present question. It returns false if another question has to
// replace it. The leader ends a replaced question, whose answer may have taken longer than questionPause:
// awaitAnswer processes it too. No third question is sent before, so added waits never keep others from an
// answer.
func (c *Client) awaitAnswer(present, before *askedWaits, told *toldWaits) (answer answeredWaits, isAnswered bool) {
	earliest := time.After(questionPause)
	outdated := c.waitsQuestion.outdated
	if present.request.GetAfter() == 0 {
		outdated = nil // the leader replies at once
	}
	var answeredBefore chan answeredWaits
	if before != nil {
		answeredBefore = before.answered
	}
	for mayReplace, isOutdated := false, false; !mayReplace || !isOutdated || answeredBefore != nil; {
		select {
		case answer = <-present.answered:
			return answer, true
		case answer = <-answeredBefore:
			if answer.err == nil {
				c.tellWaits(before, answer.reply, told)
			}
			answeredBefore = nil
		case <-earliest:
			mayReplace = true
		case <-outdated:
			isOutdated, outdated = true, nil
		}
	}
	return answeredWaits{}, false
}

// drop ends a question without a use for its answer. nil: there is none.
func (a *askedWaits) drop() {
	if a != nil {
		a.cancel()
	}
}

// sendQuestion asks the leader once.
func (c *Client) sendQuestion(request *clusterpb.EndedWaitsRequest) *askedWaits {
	ctx, cancel := context.WithTimeout(c.alive, rpc.AttemptTimeout)
	asked := &askedWaits{request: request, answered: make(chan answeredWaits, 1), cancel: cancel}
	go func() {
		defer cancel()
		reply, err := rpc.Ask(ctx, c.router, rpc.Node.EndedWaits, request)
		asked.answered <- answeredWaits{reply, err}
	}()
	return asked
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
