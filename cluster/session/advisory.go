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

// ErrInterrupted says that somebody did not wait any longer for an advisory lock, and has none.
var ErrInterrupted = errors.New("interrupted")

// Lock is TakeLock for an owner that has nothing else of the file: if nobody can tell what became of the request, all that the
// owner has goes as soon as the cluster can be told. The error is ErrInterrupted when ctx ended before the lock was there.
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

// dropOwner tries until it is done, or the session is gone and its locks with it. It asks also while calls fail at once, and
// takes its time for each try.
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
		if err == nil || errors.Is(err, errClosing) { // what the owner has ends with the session
			return
		}
		failing.note(err)
		_ = pause.For(c.ctx, reopenPause)
	}
}

// TakeLock takes an advisory lock, or releases it. To wait has no limit of time once the cluster has the request, whether it
// answers meanwhile or not; when ctx ends, the result is CANCELLED unless the lock was there already, and the request keeps
// its place for a moment. A lock without a session is taken in the one in use, which is noted in op. SESSION_LOST says that
// the session has ended, NOT_FOUND that the owner has released what it waited for meanwhile.
//
// An error with the code CANCELLED says that the cluster was never asked. After any other nobody can tell what became of the
// request, and it may still wait for a lock, though it will not be done any later: the caller has to tell the cluster that the
// owner has dropped its locks of the file.
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

// RequestLock is TakeLock without the wait: the code is then WAITING, and the returned request is the one to wait for
// ([Client.AwaitLock]) or to interrupt; else the request is nil.
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

// AwaitLock waits until a request for a lock has ended, of this client or of one before it with the same session. The result is that of
// [Client.TakeLock], or has the code WAITING if ctx has ended or interrupted was closed before: then the request waits in the cluster, until
// it is interrupted ([Client.InterruptLock]) or waited for once more.
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

// adoptWait returns a request that a killed process has left, if op asks for the same once more.
func (c *Client) adoptWait(op *storepb.TakeLock) *storepb.AwaitLock {
	if !op.GetWait() || !c.waits.mayLeave.Load() {
		return nil
	}
	ctx, cancel := c.withTimeout(context.Background(), commandRequest)
	defer cancel()
	if c.abandoned.cancelUntilDone(ctx, c.ctx.Done()) != nil { // the requests may not be known yet; and then no command is done either
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

// requestLock says in op which session the lock is taken in.
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
		op = proto.CloneOf(op) // an attempt that was given up may still read it
		op.Judged, op.Kin = result.GetProcesses(), c.holders.isRelative(caller, result.GetProcesses())
	}
}

// stillOurs looks around before a lock is promised: this host may have slept.
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

// InterruptLock has a request wait no more. Until the cluster knows, the request may become a lock, so the result comes only then, or an
// error (see TakeLock): once the time for an operation is up, or at once while the cluster is silent. The result is OK if the request became a
// lock before, else CANCELLED. In another session the number of the request is that of another one.
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
