package fusefs

import (
	"context"
	"sync"
	"time"

	"lockfs/fusefs/inotify"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/namespace"
)

// following learns of removals on other hosts. The mount keeps removed files that are open here, and notifies
// inotify(7) watches.
type following struct {
	stop context.CancelFunc
	over sync.WaitGroup
}

func (m *Mounted) follow() *following {
	ctx, stop := context.WithCancel(context.Background())
	f := &following{stop: stop}
	r := inotify.NewRemovals(m.fs.known.Knows, m.connection.Number, func(r namespace.Removal) {
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

// end waits for the end of notifications, which may wait for other requests of programs. It returns false
// after the limit.
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

// removedElsewhere is called for each inode removed by another session, and with none after a gap in the
// stream.
func (fs *fileSystem) removedElsewhere(r namespace.Removal) {
	if r.Ino != 0 {
		fs.unnamed.add(r.Ino)
		fs.keepUnnamed(r.Ino)
		return
	}
	open := fs.inodes.notKept()
	go func() {
		for _, ino := range open {
			_, _ = fs.attr(thread.NewRequest(nil, 0), ino) // keeps it if it has no name
		}
	}()
}
