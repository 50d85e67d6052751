package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/formats/pause"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// errForgotten means: the mount was away for too long.
var errForgotten = errors.New("the outcome of the call is unknown: its session ended too long ago")

// Mutate commits one change and returns its result when a quorum has it on disk. An error wraps
// context.DeadlineExceeded if no quorum answers in time, or none has answered any call for that long. The
// client then cancels the operation: an exclusive creation is removed unless other programs use it.
func (c *Client) Mutate(ctx context.Context, caller *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	return c.Create(ctx, caller, op, nil)
}

// Create is Mutate for operations which create a name. answer renders the kernel's reply for success, so
// [FinishAnswers] can send it if this process is killed first. answer may be nil, and may return nil.
//
// Create adds the lock facts of a content, and watches its holder.
func (c *Client) Create(
	asked context.Context, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (*storepb.Result, error) {
	if err := c.checkAvailable(commandRequest); err != nil {
		return nil, err
	}
	ctx, cancel := c.withTimeout(asked, commandRequest)
	defer cancel()
	write, names := op.GetSetContent(), makesName(op)
	if write != nil {
		if _, err := c.awaitActive(ctx); err != nil { // the clock offset is unknown before the first keepalive
			result, _, err := notAsked(err)
			return result, err
		}
		write.Facts = c.holders.describe(caller, write.GetName().GetName(), write.GetContent())
	}
	if target := op.GetCreate().GetTarget(); len(target) > 0 {
		op.GetCreate().Facts = c.holders.describe(caller, op.GetCreate().GetName(), target)
	}
	c.holders.prepare(factsIn(op).GetProcess())
	describeName(op)
	c.holders.attachNamespace(caller, op)
	if names && hostinfo.BootTime() < time.Duration(c.creatorsWanted.Load()) {
		c.holders.attachLineage(caller)
	}
	result, _, err := c.createIn(ctx, 0, caller, op, answer)
	if err == nil && result.GetCode() == storepb.Code_NEED_LINEAGE {
		c.holders.attachLineage(caller)
		if names {
			c.creatorsWanted.Store(int64(hostinfo.BootTime() + creatorsWanted))
		}
		result, _, err = c.createIn(ctx, 0, caller, op, answer)
	}
	if err != nil || result.GetCode() != storepb.Code_OK {
		return result, err
	}
	c.holders.watch(factsIn(op).GetProcess())
	if names {
		c.holders.watchCreator(caller)
	}
	return result, nil
}

func factsIn(op *storepb.Op) *storepb.Facts {
	if write := op.GetSetContent(); write != nil {
		return write.GetFacts()
	}
	return op.GetCreate().GetFacts()
}

func makesName(op *storepb.Op) bool {
	return op.GetCreate() != nil || op.GetLink() != nil || op.GetRename() != nil
}

// GoesOn records: a thread has received the reply to its creation.
func (c *Client) GoesOn(thread uint32) { c.journal.goesOn(thread) }

// createIn executes a command in a session (0: the session in use), and returns the command's number. It
// first waits for the cancellation of abandoned calls. The code CANCELLED with an error means the cluster did
// not get the command (see notAsked). The result is SESSION_LOST if the given session has ended.
func (c *Client) createIn(
	ctx context.Context, only ids.Session, caller *storepb.Caller, op *storepb.Op, answer func(*storepb.Result) []byte,
) (result *storepb.Result, seq ids.Sequence, err error) {
	if err := c.abandoned.cancelUntilDone(ctx, c.ctx.Done()); err != nil {
		return notAsked(fmt.Errorf("an earlier abandoned call is not settled: %w", err))
	}
	slot, err := c.takeSlot(ctx)
	if err != nil {
		return notAsked(err)
	}
	caller.Host = c.host
	for {
		session, err := c.awaitActive(ctx)
		if err == nil {
			err = session.numbers.await(ctx)
		}
		if err != nil {
			c.journal.end(slot)
			c.slots <- slot
			return notAsked(err)
		}
		if only != 0 && session.id != only {
			c.journal.end(slot)
			c.slots <- slot
			return &storepb.Result{Code: storepb.Code_SESSION_LOST}, 0, nil
		}
		op = c.holders.refreshFacts(op)
		seq, acked := session.numbers.take(func(seq ids.Sequence) {
			if op.GetTakeLock().GetWait() {
				c.waits.add(callNumber{session.id, seq}, false)
			}
			c.journal.begin(slot, session.id, seq)
		})
		result, err := c.send(ctx, &storepb.Command{
			Session: uint64(session.id), Seq: uint64(seq), Acked: uint64(acked), Caller: caller, Op: op,
		})
		if err == nil && session.expiredLocally() {
			_, err = c.awaitActive(ctx) // this host slept: check the session first
		}
		if err == nil {
			err = ctx.Err() // the caller does not wait any more
		}
		if err != nil {
			changes, _ := predict(op)
			call := c.abandoned.begin(isUnpredicted(op), changes...)
			c.settling.begin(func() { c.cancelUntilDone(session, seq, slot, call) })
			c.waits.end(callNumber{session.id, seq})
			return nil, 0, err
		}
		if result.GetCode() == storepb.Code_SESSION_UNKNOWN {
			session.numbers.done(seq)
			c.waits.end(callNumber{session.id, seq})
			c.lose(session) // the command is not done in this session, now or later: use another session
			continue
		}
		if code := result.GetCode(); code == storepb.Code_SESSION_FORGOTTEN || code == storepb.Code_TOO_MANY_REQUESTS {
			session.numbers.done(seq)
			c.journal.end(slot)
			c.waits.end(callNumber{session.id, seq})
			c.slots <- slot
			if code == storepb.Code_TOO_MANY_REQUESTS {
				return notAsked(errNoRoom) // equivalent: not done, now or later
			}
			c.lose(session)
			return nil, 0, errForgotten
		}
		told := answer != nil && result.GetCode() == storepb.Code_OK
		if told {
			c.journal.promise(slot, caller.GetPid(), answer(result))
		}
		c.journal.end(slot)
		// Acknowledge the number only now: the cluster then forgets how to cancel the call, and a successor
		// would cancel a call in the journal.
		session.numbers.done(seq)
		c.slots <- slot
		return result, seq, nil
	}
}

// errNoRoom means: the cluster has no room for more replies ([namespace.MaxReplies]). It is not expected.
var errNoRoom = errors.New("the cluster keeps too many replies of this mount that are not acknowledged yet")

func (c *Client) takeSlot(ctx context.Context) (slot int, err error) {
	select {
	case <-c.leaving:
		return 0, errClosing
	default:
	}
	select {
	case slot := <-c.slots:
		return slot, nil
	case <-c.leaving:
		return 0, errClosing
	case <-ctx.Done():
		return 0, fmt.Errorf("too many operations wait for the cluster: %w", ctx.Err())
	}
}

// notAsked is the result of a command which was not sent: it is not done, now or later.
func notAsked(err error) (*storepb.Result, ids.Sequence, error) {
	return &storepb.Result{Code: storepb.Code_CANCELLED}, 0, err
}

func (c *Client) send(ctx context.Context, cmd *storepb.Command) (*storepb.Result, error) {
	if refused := c.notYet(cmd); refused != nil {
		return refused, nil
	}
	request := &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Command{Command: cmd}}
	reply, err := c.executeLeasing(ctx, request)
	if err == nil {
		c.recordReply(commandRequest)
	}
	return reply.GetResult(), err
}

// cancelUntilDone retries until the cluster has recorded the cancellation of a number, and then acknowledges
// it. If the mount ends before, the next process continues.
func (c *Client) cancelUntilDone(session *clientSession, seq ids.Sequence, slot int, call *abandonedCall) {
	for err := c.cancelCall(c.ctx, callNumber{session.id, seq}); err != nil; err = c.cancelCall(c.ctx, callNumber{session.id, seq}) {
		if pause.For(c.ctx, reopenPause) != nil {
			c.logger.Error("closed before the outcome of a call was settled", "session", session.id, "seq", seq, "error", err)
			return
		}
	}
	c.abandoned.end(call)
	session.numbers.done(seq)
	c.journal.end(slot)
	c.slots <- slot
}

// cancelCall undoes a call whose result no program got.
func (c *Client) cancelCall(ctx context.Context, call callNumber) error {
	op := &storepb.Op{Op: &storepb.Op_Cancel{Cancel: &storepb.Cancel{Seq: uint64(call.seq)}}}
	result, err := c.send(ctx, &storepb.Command{Session: uint64(call.session), Op: op})
	if err != nil {
		return fmt.Errorf("settle a call: %w", err)
	}
	if result.GetCode() != storepb.Code_OK {
		c.logger.Error("the outcome of a call is unknown for good",
			"session", call.session, "seq", call.seq, "code", result.GetCode())
	}
	return nil
}
