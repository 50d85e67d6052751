package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockfs/raftstore/storepb"
)

// ErrInterrupted says that somebody did not wait any longer for an advisory lock, and has none.
var ErrInterrupted = errors.New("interrupted")

// Session is the session in use, in which advisory locks are taken, once it is sure that the cluster has not
// given it up: this host may have been cut off or asleep. It is 0 if that cannot be told in time.
func (c *Client) Session() uint64 {
	if session, _ := c.holder.get(); session != nil && !session.fenced() {
		return session.id
	}
	if c.mayAsk(anything) != nil {
		return 0
	}
	ctx, cancel := c.patience(context.Background(), anything)
	defer cancel()
	session, err := c.live(ctx)
	if err != nil {
		return 0
	}
	return session.id
}

// lastSession is Session at once: it may have been given up.
func (c *Client) lastSession() uint64 {
	if session, _ := c.holder.get(); session != nil {
		return session.id
	}
	return 0
}

// Lock takes an advisory lock, or releases it. To wait has no limit of time once the cluster has the request, whether it
// answers meanwhile or not; when ctx ends, the error is ErrInterrupted unless the lock was there already, and the request
// keeps its place for a moment. A lock without a session is taken in the one in use, which is noted in op. SESSION_LOST
// says that the session has ended.
func (c *Client) Lock(ctx context.Context, caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, error) {
	result, seq, err := c.requestLock(caller, op)
	request := &storepb.AwaitLock{
		Session: op.GetSession(), Seq: seq, Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(),
		Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
	}
	switch {
	case err == nil && result.GetCode() == storepb.Code_OK:
		return c.stillOurs(request, result)
	case err != nil || result.GetCode() != storepb.Code_WAITING:
		return result, err
	}
	for {
		result, err := c.Query(ctx, &storepb.Query{Query: &storepb.Query_AwaitLock{AwaitLock: request}})
		if ctx.Err() != nil {
			return c.interrupt(caller, request)
		}
		if err == nil && result.GetCode() != storepb.Code_WAITING {
			return c.stillOurs(request, result)
		}
	}
}

// requestLock says in op which session the lock is taken in.
func (c *Client) requestLock(caller *storepb.Caller, op *storepb.TakeLock) (result *storepb.Result, seq uint64, err error) {
	if err := c.mayAsk(aCommand); err != nil {
		return nil, 0, err
	}
	ctx, cancel := c.patience(context.Background(), aCommand)
	defer cancel()
	if op.GetSession() == 0 {
		session, err := c.live(ctx)
		if err != nil {
			return nil, 0, err
		}
		op.Session = session.id
	}
	return c.create(ctx, caller, &storepb.Op{Op: &storepb.Op_TakeLock{TakeLock: op}}, nil)
}

// stillOurs looks around before a lock is promised: this host may have slept.
func (c *Client) stillOurs(request *storepb.AwaitLock, result *storepb.Result) (*storepb.Result, error) {
	ctx, cancel := c.patience(context.Background(), anything)
	defer cancel()
	session, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	if session.id != request.GetSession() || result.GetCode() == storepb.Code_NOT_FOUND {
		return &storepb.Result{Code: storepb.Code_SESSION_LOST}, nil
	}
	return result, nil
}

// interrupt tells the cluster that nobody waits any more. Until it knows, the request may become a lock, so
// the caller is told only then, or once the time for an operation is up: then a lock that comes is given up.
func (c *Client) interrupt(
	caller *storepb.Caller, request *storepb.AwaitLock,
) (*storepb.Result, error) {
	result, err := c.Mutate(c.ctx, caller, interruptOp(request, false))
	switch {
	case err != nil:
		c.givenUp.begin()
		go c.abandon(caller, request)
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	case result.GetCode() == storepb.Code_OK:
		return c.stillOurs(request, result)
	}
	return nil, ErrInterrupted
}

func interruptOp(request *storepb.AwaitLock, abandon bool) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_InterruptLock{InterruptLock: &storepb.InterruptLock{
		Seq: request.GetSeq(), Ino: request.GetIno(), Kind: request.GetKind(), Owner: request.GetOwner(),
		Type: request.GetType(), Start: request.GetStart(), End: request.GetEnd(), Abandon: abandon,
	}}}
}

// abandon sees to it that a request whose caller was told that it has no lock does not become one for long. Until the
// cluster knows, nothing else begins (see givenUp).
func (c *Client) abandon(caller *storepb.Caller, request *storepb.AwaitLock) {
	defer c.givenUp.end()
	for c.ctx.Err() == nil && c.lastSession() == request.GetSession() {
		ctx, cancel := c.patience(c.ctx, aCommand)
		_, _, err := c.commit(ctx, caller, interruptOp(request, true), nil)
		cancel()
		if err == nil || errors.Is(err, errLeaving) { // the request ends with the session
			return
		}
	}
}

// lockWait is how long a node keeps a question for a lock. It is below attemptTimeout.
const lockWait = time.Second

// awaitLock answers once a request has become a lock. That was committed, whoever leads meanwhile; only
// that there is no such request needs to be confirmed.
func (n *Node) awaitLock(ctx context.Context, request *storepb.AwaitLock) (*storepb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	result, err := n.fsm.AwaitLock(ctx, request)
	if err == nil && result.GetCode() == storepb.Code_NOT_FOUND {
		if err = n.confirmer.confirm(n.ctx); err == nil {
			result, err = n.fsm.AwaitLock(ctx, request)
		}
	}
	return result, notAnswered(err)
}
