package fusefs

import (
	"context"
	"sync"
	"time"

	"lockfs/fusefs/thread"
	"lockfs/fusefs/watch"
	"lockfs/raftstore/namespace"
)

// following learns what other hosts remove: the mount keeps it if it is open here, and tells programs that watch it with inotify(7).
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
	go m.ops.AnswerReleases(ctx, m.fs.released)
	go m.ops.FollowRemovals(ctx, func(removed namespace.Removal) {
		m.fs.removedElsewhere(removed)
		r.Add(removed)
	})
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

// removedElsewhere is called for each inode that another session has removed, and with none after some may have been missed.
func (fs *fileSystem) removedElsewhere(r namespace.Removal) {
	if r.Ino != 0 {
		fs.unnamed.add(r.Ino)
		fs.keepUnnamed(r.Ino)
		return
	}
	open := fs.inodes.notKept()
	go func() {
		for _, ino := range open {
			_, _ = fs.attr(thread.NewRequest(nil, 0), ino) // which keeps it if it has no name
		}
	}()
}
