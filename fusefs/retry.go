package fusefs

import (
	"context"
	"time"

	"lockfs/raftstore/storepb"
)

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
