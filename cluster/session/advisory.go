package session

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// ErrInterrupted means: the caller stopped waiting for an advisory lock and does not hold it.
var ErrInterrupted = errors.New("interrupted")

// Lock is TakeLock for an owner without other locks of the file. If the outcome of the request is unknown, a
// background task releases all locks of the owner. Lock returns ErrInterrupted if ctx ends before the lock is
// granted.
func (c *Client) Lock(ctx context.Context, caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, error) {
	result, err := c.TakeLock(ctx, caller, op)
	isCancelled := result.GetCode() == storepb.Code_CANCELLED
	switch {
	case err != nil && !isCancelled:
		go c.dropOwner(caller, op)
	case err == nil && isCancelled:
		return nil, ErrInterrupted
	}
	return result, err
}

// dropOwner releases all locks of the owner of a request. It retries until the release is committed or the
// session has ended. It also retries while calls fail at once, with a full timeout for each attempt.
func (c *Client) dropOwner(caller *storepb.Caller, taken *storepb.TakeLock) {
	op := &storepb.Op{Op: &storepb.Op_DropLocks{
		DropLocks: &storepb.DropLocks{Ino: taken.GetIno(), Kind: taken.GetKind(), Owners: []uint64{taken.GetOwner()}},
	}}
	failing := failures{what: "a release of locks", logger: c.logger}
	defer failing.end()
	for c.ctx.Err() == nil && c.lastSession() == ids.Session(taken.GetSession()) {
		ctx, cancel := c.withTimeout(c.ctx, commandRequest)
		_, _, err := c.createIn(ctx, 0, caller, op, nil)
		cancel()
		if err == nil || errors.Is(err, errClosing) { // the owner's locks end with the session
			return
		}
		failing.note(err)
		_ = pause.For(c.ctx, reopenPause)
	}
}

// TakeLock acquires or releases an advisory lock. A wait has no time limit once the cluster has the request.
// When ctx ends, the result is CANCELLED unless the lock was granted before; the request keeps its place for
// a moment. Without a session in op, TakeLock uses the session in use and stores it in op. SESSION_LOST means
// the session has ended. NOT_FOUND means the owner has released the awaited lock meanwhile.
//
// An error with the code CANCELLED means the cluster did not get the request. After any other error the
// outcome is unknown: the request may be waiting, and is not applied later. The caller then has to release
// all locks of the owner.
func (c *Client) TakeLock(ctx context.Context, caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, error) {
	result, request, err := c.RequestLock(caller, op)
	if request == nil {
		return result, err
	}
	result, err = c.AwaitLock(ctx, nil, request)
	if err == nil && result.GetCode() == storepb.Code_WAITING {
		return c.InterruptLock(caller, request)
	}
	return result, err
}

// RequestLock is TakeLock without the wait. If the code is WAITING, it returns the request for
// [Client.AwaitLock] or [Client.InterruptLock]; else the request is nil.
func (c *Client) RequestLock(caller *storepb.Caller, op *storepb.TakeLock) (*storepb.Result, *storepb.AwaitLock, error) {
	if request := c.adoptWait(op); request != nil {
		return &storepb.Result{Code: storepb.Code_WAITING}, request, nil
	}
	result, seq, err := c.requestLock(caller, op)
	c.noteLocked(op, result)
	request := &storepb.AwaitLock{
		Session: op.GetSession(), Seq: uint64(seq), Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(),
		Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
	}
	if err == nil && result.GetCode() == storepb.Code_WAITING {
		return result, request, nil
	}
	if op.GetWait() {
		c.waits.end(numberOf(request))
	}
	if err == nil && result.GetCode() == storepb.Code_OK {
		result, err = c.stillOurs(request, result)
	}
	return result, nil, err
}

// AwaitLock waits for the end of a lock request of this session, also of a previous process. The result is
// like TakeLock's. The code is WAITING if ctx ends or interrupted is closed first. The request then waits in
// the cluster until [Client.InterruptLock] ends it or another AwaitLock continues.
func (c *Client) AwaitLock(ctx context.Context, interrupted <-chan struct{}, request *storepb.AwaitLock) (*storepb.Result, error) {
	w := c.waits.add(numberOf(request), true)
	for {
		select {
		case <-w.news:
		case <-interrupted:
			return &storepb.Result{Code: storepb.Code_WAITING}, nil
		case <-ctx.Done():
			return &storepb.Result{Code: storepb.Code_WAITING}, nil
		}
		if result := c.outcome(ctx, interrupted, w, request); result.GetCode() != storepb.Code_WAITING {
			c.waits.end(numberOf(request))
			return c.stillOurs(request, result)
		}
	}
}

// outcome returns the state of a request that may have ended.
func (c *Client) outcome(ctx context.Context, interrupted <-chan struct{}, w *lockWait, request *storepb.AwaitLock) *storepb.Result {
	if w.granted.Load() {
		return &storepb.Result{Code: storepb.Code_OK}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if interrupted != nil {
		go func() {
			select {
			case <-interrupted:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	for ctx.Err() == nil {
		select {
		case c.waits.asking <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		result, err := c.Query(ctx, &storepb.Query{Query: &storepb.Query_AwaitLock{AwaitLock: request}})
		<-c.waits.asking
		if err == nil {
			return result
		}
		_ = pause.For(ctx, reopenPause)
	}
	notify(w.news) // the next waiter asks
	return &storepb.Result{Code: storepb.Code_WAITING}
}

// adoptWait returns a request of a killed process for the same lock; nil: there is none.
func (c *Client) adoptWait(op *storepb.TakeLock) *storepb.AwaitLock {
	if !op.GetWait() || !c.waits.mayLeave.Load() {
		return nil
	}
	ctx, cancel := c.withTimeout(context.Background(), commandRequest)
	defer cancel()
	if c.abandoned.cancelUntilDone(ctx, c.ctx.Done()) != nil { // the requests may be unknown yet
		return nil
	}
	session := c.lastSession()
	if op.GetSession() != 0 && ids.Session(op.GetSession()) != session {
		return nil
	}
	request := c.waits.adopt(op, session)
	if request != nil {
		op.Session = request.GetSession()
		notify(c.locked)
	}
	return request
}

// requestLock sends a lock request, and stores the session in op.
func (c *Client) requestLock(caller *storepb.Caller, op *storepb.TakeLock) (result *storepb.Result, seq ids.Sequence, err error) {
	if err := c.checkAvailable(commandRequest); err != nil {
		return notAsked(err)
	}
	ctx, cancel := c.withTimeout(context.Background(), commandRequest)
	defer cancel()
	if op.GetSession() == 0 {
		session, err := c.awaitActive(ctx)
		if err != nil {
			return notAsked(err)
		}
		op.Session = uint64(session.id)
	}
	for {
		result, seq, err = c.createIn(ctx, ids.Session(op.GetSession()), caller, &storepb.Op{Op: &storepb.Op_TakeLock{TakeLock: op}}, nil)
		if err != nil || result.GetCode() != storepb.Code_NEED_LINEAGE {
			return result, seq, err
		}
		if op.GetWait() {
			c.waits.end(callNumber{ids.Session(op.GetSession()), seq})
		}
		op = proto.CloneOf(op) // an abandoned attempt may still read it
		op.Judged, op.Kin = result.GetProcesses(), c.holders.isRelative(caller, result.GetProcesses())
	}
}

// stillOurs checks the session before the caller relies on a lock: this host may have slept.
func (c *Client) stillOurs(request *storepb.AwaitLock, result *storepb.Result) (*storepb.Result, error) {
	ctx, cancel := c.withTimeout(context.Background(), anyRequest)
	defer cancel()
	session, err := c.awaitActive(ctx)
	if err != nil {
		return nil, err
	}
	if session.id != ids.Session(request.GetSession()) {
		return &storepb.Result{Code: storepb.Code_SESSION_LOST}, nil
	}
	return result, nil
}

// InterruptLock cancels a waiting request. The request can be granted until the cluster has committed the
// interruption, so InterruptLock waits for it. The error comes after the timeout of an operation, or at once
// while the cluster is unavailable (see TakeLock). The result is OK if the lock was granted before, else
// CANCELLED. The number of a request is valid only in its session.
func (c *Client) InterruptLock(caller *storepb.Caller, request *storepb.AwaitLock) (*storepb.Result, error) {
	defer c.waits.end(numberOf(request))
	op := &storepb.Op{Op: &storepb.Op_InterruptLock{InterruptLock: interruptOf(request)}}
	err := c.checkAvailable(commandRequest)
	if err != nil {
		return nil, notStopped(err)
	}
	ctx, cancel := c.withTimeout(c.ctx, commandRequest)
	defer cancel()
	result, _, err := c.createIn(ctx, ids.Session(request.GetSession()), caller, op, nil)
	switch {
	case err != nil:
		return nil, notStopped(err)
	case result.GetCode() == storepb.Code_OK:
		return c.stillOurs(request, result)
	}
	return &storepb.Result{Code: storepb.Code_CANCELLED}, nil
}

func interruptOf(request *storepb.AwaitLock) *storepb.InterruptLock {
	return &storepb.InterruptLock{
		Seq: request.GetSeq(), Ino: request.GetIno(), Kind: request.GetKind(), Owner: request.GetOwner(),
		Type: request.GetType(), Start: request.GetStart(), End: request.GetEnd(),
	}
}

func notStopped(err error) error { return fmt.Errorf("stop waiting for a lock: %w", err) }
