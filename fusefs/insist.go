package fusefs

import (
	"context"
	"time"

	"lockfs/raftstore/storepb"
)

const (
	// insistPause is the pause before an operation is sent to the cluster again.
	insistPause = 200 * time.Millisecond
	// insistWarning is for how long the cluster could not be told of something when the mount logs that.
	insistWarning = 5 * time.Second
)

// insist commits what the cluster has to know sometime: in the background if not now, until it knows or the mount has
// ended. Then it calls over.
func (fs *fileSystem) insist(caller *storepb.Caller, op *storepb.Op, over func()) {
	if fs.tell(caller, op) == nil {
		over()
		return
	}
	fs.insistLater(caller, op, over)
}

// insistLater is insist for who does not wait for the first try either.
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
