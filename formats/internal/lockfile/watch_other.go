//go:build !linux

package lockfile

import (
	"context"
	"time"

	"lockfs/formats/pause"
)

// watcher cannot watch on this system.
type watcher struct{}

func watch(string) *watcher { return nil }

func (*watcher) current() bool { return false }

func (*watcher) wait(ctx context.Context, atMost time.Duration) (changed bool, err error) {
	return false, pause.For(ctx, atMost)
}

func (*watcher) close() {}
