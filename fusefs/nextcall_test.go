package fusefs

import (
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// wentOn is an Operator that knows which thread has gone on last.
type wentOn struct {
	*session
	thread atomic.Uint32
}

func (o *wentOn) GoesOn(thread uint32) { o.thread.Store(thread) }

// TestWhoCreatedGoesOn with whatever is asked of the file next: what was told of it at its creation may not be true any more.
func TestWhoCreatedGoesOn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir, ops := t.TempDir(), &wentOn{session: newCluster().open()}
	mountAt(t, dir, ops, Options{})
	for _, row := range []struct {
		call string
		do   func(fd int) error
	}{
		{"fchmod", func(fd int) error { return unix.Fchmod(fd, 0o600) }},
		{"ftruncate", func(fd int) error { return unix.Ftruncate(fd, 100) }},
		{"fallocate", func(fd int) error { return unix.Fallocate(fd, 0, 0, 100) }},
		{"fsync", unix.Fsync},
		{"flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX) }},
		{"fcntl", func(fd int) error {
			return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		}},
		{"fsetxattr", func(fd int) error { return unix.Fsetxattr(fd, "user.a", []byte("b"), 0) }},
		{"write", func(fd int) error { _, err := unix.Write(fd, []byte("a")); return err }},
	} {
		t.Run(row.call, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			fd, err := unix.Open(filepath.Join(dir, row.call), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
			require.NoError(t, err)
			defer func() { require.NoError(t, unix.Close(fd)) }()
			ops.thread.Store(0)
			_ = row.do(fd) // some are refused, which is a request too
			require.Equal(t, uint32(unix.Gettid()), ops.thread.Load())
		})
	}
}
