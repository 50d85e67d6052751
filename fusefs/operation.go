package fusefs

import (
	"context"
	"syscall"
	"time"

	"lockfs/fusefs/fuseattr"
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
	return fuseattr.Outcome(result, err, fs.logger)
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
	return fuseattr.Outcome(result, err, fs.logger)
}

// query returns EINTR if the caller is killed: other callers may wait for the same directory's lock.
func (fs *fileSystem) query(by thread.Request, query *storepb.Query) (*storepb.Result, syscall.Errno) {
	ctx, end := by.WhileWaitedFor(0)
	defer end()
	result, err := fs.ops.Query(ctx, query)
	if err != nil && ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return fuseattr.Outcome(result, err, fs.logger)
}

const (
	insistPause = 200 * time.Millisecond
	// insistWarning is how long an operation fails before the log has a warning.
	insistWarning = 5 * time.Second
)

// insist commits an operation which the cluster must record. After a first failure it continues in the
// background, until success or the end of the mount. Then it calls over.
func (fs *fileSystem) insist(caller *storepb.Caller, op *storepb.Op, over func()) {
	if fs.tell(caller, op) == nil {
		over()
		return
	}
	fs.insistLater(caller, op, over)
}

// insistLater is insist entirely in the background.
func (fs *fileSystem) insistLater(caller *storepb.Caller, op *storepb.Op, over func()) {
	fs.insisting.Add(1)
	go func() {
		defer fs.insisting.Add(-1)
		defer over()
		began, isLogged := time.Now(), false
		for !fs.ended.Load() {
			err := fs.tell(caller, op)
			if err == nil {
				break
			}
			if !isLogged && time.Since(began) >= insistWarning {
				isLogged = true
				fs.logger.Warn("the cluster has not recorded an operation yet, and locks or files stay until it has; the mount tries again", "operation", op.String(), "error", err)
			}
			time.Sleep(insistPause)
		}
		if isLogged && !fs.ended.Load() {
			fs.logger.Info("the cluster has recorded an operation late", "operation", op.String(), "after", time.Since(began).Round(time.Millisecond))
		}
	}()
}

func (fs *fileSystem) tell(caller *storepb.Caller, op *storepb.Op) error {
	_, err := fs.ops.Mutate(context.Background(), caller, op)
	return err
}
