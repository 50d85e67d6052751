//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"lockfs/formats/pause"
)

// openFlags avoid blocking on a pipe and following a symbolic link.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

const (
	flockTimeout  = 10 * time.Second
	flockInterval = 2 * time.Millisecond // flock(2) has no time limit
)

// LockDir locks a directory while this process evaluates and changes a lock in it. It excludes other users of
// LockDir on this host, until unlock or the end of the process. It does nothing if the file system cannot
// lock directories.
func LockDir(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() }
	deadline := time.Now().Add(flockTimeout)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return unlock, nil
		}
		if time.Now().After(deadline) {
			unlock()
			return nil, fmt.Errorf("another program keeps the flock(2) lock of the directory %s; lslocks(8) shows which", dir)
		}
		if err := pause.For(ctx, flockInterval); err != nil {
			unlock()
			return nil, err
		}
	}
}
