package fusefs

import (
	"syscall"
	"time"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/storepb"
)

// killedGrace is what a change still gets whose caller was killed: mostly it is done by then, and known to be.
const killedGrace = time.Second

// mutate does not hand on the request's interruption: a change is not given up half way, unless its caller was killed and
// the cluster does not answer (EINTR, which nobody gets to see). The result is nil when there is none, and never nil
// without an error.
func (fs *fileSystem) mutate(
	interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.Op,
) (*storepb.Result, syscall.Errno) {
	ctx, end := thread.NewRequest(interrupted, caller.GetPid()).WhileWaitedFor(killedGrace)
	defer end()
	result, err := fs.ops.Mutate(ctx, caller, op)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return kernel.Outcome(result, err, fs.logger)
}

// create is mutate for what makes a name. If the caller is killed while it waits, nobody is told of the
// name, so there must be none: EINTR, which nobody gets to see. What is to be noted of a success is noted before the caller can be told of
// it, by whomever: should this process be killed then, its guard answers in its place.
func (fs *fileSystem) create(
	interrupted <-chan struct{}, caller *storepb.Caller, op *storepb.Op, note func(*storepb.Result), answer func(*storepb.Result) []byte,
) (*storepb.Result, syscall.Errno) {
	ctx, end := thread.NewRequest(interrupted, caller.GetPid()).WhileWaitedFor(0)
	defer end()
	result, err := fs.ops.Create(ctx, caller, op, func(result *storepb.Result) []byte {
		note(result)
		return answer(result)
	})
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return kernel.Outcome(result, err, fs.logger)
}

// query gives up, with EINTR, when the caller is killed: others may wait behind it for the directory's lock.
func (fs *fileSystem) query(by thread.Request, query *storepb.Query) (*storepb.Result, syscall.Errno) {
	ctx, end := by.WhileWaitedFor(0)
	defer end()
	result, err := fs.ops.Query(ctx, query)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return kernel.Outcome(result, err, fs.logger)
}
