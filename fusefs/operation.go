package fusefs

import (
	"syscall"
	"time"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/storepb"
)

// killedGrace is how long the mount still waits for the change of a killed caller. Most changes are done by
// then, with a known outcome.
const killedGrace = time.Second

// mutate ignores signals: a change runs to its end. It gives up with EINTR, which no program sees, only for a
// killed caller without an answer of the cluster. Without an error the result is not nil.
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

// create is mutate for new names. If the caller is killed, no program learns of the name, so the name must
// not stay: create then returns EINTR, which no program sees. note runs on success, before any process
// answers the caller: after a crash of this process, its guard process answers.
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

// query returns EINTR if the caller is killed: other callers may wait for the same directory's lock.
func (fs *fileSystem) query(by thread.Request, query *storepb.Query) (*storepb.Result, syscall.Errno) {
	ctx, end := by.WhileWaitedFor(0)
	defer end()
	result, err := fs.ops.Query(ctx, query)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return kernel.Outcome(result, err, fs.logger)
}
