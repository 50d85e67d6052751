package serve

import (
	"encoding/binary"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// waiter is a file system with lock requests that end by an interruption or suspension only.
type waiter struct {
	fuse.RawFileSystem
	suspended   chan struct{}
	interrupted chan bool // whether a request was interrupted
}

func (w *waiter) SetLkw(interrupted <-chan struct{}, _ *fuse.LkIn) fuse.Status {
	select {
	case <-interrupted:
		w.interrupted <- true
	case <-w.suspended:
		w.interrupted <- false
	}
	return fuse.EINTR
}

// kernelEnd is the other end of a server's connection.
type kernelEnd struct {
	t  *testing.T
	fd int
}

func (k *kernelEnd) send(opcode uint32, unique uint64, in any) {
	k.t.Helper()
	header := fuse.InHeader{Length: uint32(binary.Size(in)), Opcode: opcode, Unique: unique}
	message, err := binary.Append(nil, binary.NativeEndian, in)
	require.NoError(k.t, err)
	_, err = binary.Encode(message, binary.NativeEndian, header)
	require.NoError(k.t, err)
	_, err = unix.Write(k.fd, message)
	require.NoError(k.t, err)
}

// TestAnInterruptionThatComesBeforeItsRequestIsHandled ends the request, also if the server stops then: it would wait on in the
// cluster, and no program would know of its lock.
func TestAnInterruptionThatComesBeforeItsRequestIsHandled(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	k := &kernelEnd{t, ends[1]}
	defer func() { _ = unix.Close(k.fd) }()
	device := os.NewFile(uintptr(ends[0]), "device")
	defer func() { _ = device.Close() }()

	options := &fuse.MountOptions{EnableLocks: true, MaxWrite: 4096}
	init, err := Opened(&fuse.InitIn{Major: 7, Minor: 36, Flags: fuse.CAP_POSIX_LOCKS | fuse.CAP_FLOCK_LOCKS}, options)
	require.NoError(t, err)
	fs := &waiter{fuse.NewDefaultRawFileSystem(), make(chan struct{}), make(chan bool, 1)}
	begun, handle := make(chan struct{}), make(chan struct{})
	asks := func(header *fuse.InHeader) {
		if header.Opcode == OpSetLkw {
			close(begun)
			<-handle
		}
	}
	isLock := func(header *fuse.InHeader) bool { return header.Opcode == OpSetLkw }
	s, err := New(fs, device, init, options, asks, isLock, func() { close(fs.suspended) }, func([]byte) bool { return false }, Budgets{}, slog.Default())
	require.NoError(t, err)
	served := make(chan bool, 1)
	go func() {
		gone, err := s.Serve(nil)
		assert.NoError(t, err)
		served <- gone
	}()

	const unique = 2
	k.send(OpSetLkw, unique, fuse.LkIn{})
	<-begun
	k.send(opInterrupt, unique|1, fuse.InterruptIn{Unique: unique})
	answer := make([]byte, answerRoom)
	n, err := unix.Read(k.fd, answer)
	require.NoError(t, err)
	require.Equal(t, -int32(unix.EAGAIN), statusOf(answer[:n]), "the kernel repeats it, and the server reads no more")
	go func() {
		for {
			flags, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFL, 0)
			if !assert.NoError(t, err) || flags&unix.O_NONBLOCK != 0 {
				close(handle)
				return
			}
			time.Sleep(wakePause)
		}
	}()
	given, err := s.Stop(10 * time.Second)
	require.NoError(t, err)
	require.False(t, <-served)
	require.True(t, <-fs.interrupted)
	require.Empty(t, given)
}
