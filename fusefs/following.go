package fusefs

import (
	"context"
	"sync"
	"time"

	"lockfs/fusefs/watch"
	"lockfs/raftstore/namespace"
)

// following lets programs know that watch a file with inotify(7) which somebody else removes.
type following struct {
	stop context.CancelFunc
	over sync.WaitGroup
}

func (m *Mounted) follow() *following {
	ctx, stop := context.WithCancel(context.Background())
	f := &following{stop: stop}
	r := watch.NewRemovals(m.fs.known.Knows, m.connection.Number, func(r namespace.Removal) {
		_ = m.server.DeleteNotify(uint64(r.Parent), uint64(r.Ino), r.Name) // the kernel may have forgotten it
	})
	f.over.Go(func() { r.Run(ctx.Done()) })
	go m.ops.FollowRemovals(ctx, r.Add)
	return f
}

// end waits until the kernel is told of nothing any more, which may take until somebody has another answer; false: longer than the limit.
func (f *following) end(limit time.Duration) bool {
	f.stop()
	over := make(chan struct{})
	go func() {
		f.over.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-time.After(limit):
		return false
	}
}
