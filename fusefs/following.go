package fusefs

import (
	"context"
	"sync"

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
