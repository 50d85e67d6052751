package fusefs

import (
	"context"
	"time"

	"lockfs/raftstore/storepb"
)

// insistPause is before the cluster is told once more what it could not be told.
const insistPause = 200 * time.Millisecond

// insist commits what the cluster has to know sometime: in the background if not now, until it knows or the mount has
// ended. Then it calls over.
func (fs *fileSystem) insist(caller *storepb.Caller, op *storepb.Op, over func()) {
	if fs.told(caller, op) {
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
		for !fs.ended.Load() && !fs.told(caller, op) {
			time.Sleep(insistPause)
		}
	}()
}

func (fs *fileSystem) told(caller *storepb.Caller, op *storepb.Op) bool {
	_, err := fs.ops.Mutate(context.Background(), caller, op)
	return err == nil
}
