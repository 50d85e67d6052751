package thread

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestBeginsAnew has threads wait in two system calls, of which one walks a path.
func TestBeginsAnew(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	in := func(call func() error) (thread uint32, done <-chan error) {
		threads, result := make(chan int, 1), make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			threads <- unix.Gettid()
			result <- call()
		}()
		return uint32(<-threads), result
	}
	opening, opened := in(func() error {
		fd, err := unix.Open(fifo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	})
	reading, read := in(func() error {
		_, err := unix.Read(pipe[0], make([]byte, 1))
		return err
	})
	require.Eventually(t, func() bool {
		call, _, known := systemCall(opening)
		return known && slices.Contains(walking, call)
	}, 10*time.Second, time.Millisecond)
	require.True(t, BeginsAnew(opening))
	require.Eventually(t, func() bool { call, _, known := systemCall(reading); return known && call == unix.SYS_READ }, 10*time.Second, time.Millisecond)
	require.False(t, BeginsAnew(reading))
	require.True(t, BeginsAnew(0), "it cannot be looked at")

	writer, err := unix.Open(fifo, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, <-opened)
	_, err = unix.Write(pipe[1], []byte{0})
	require.NoError(t, err)
	require.NoError(t, <-read)
	for _, fd := range []int{writer, pipe[0], pipe[1]} {
		require.NoError(t, unix.Close(fd))
	}
}
