package history

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// openLock is a descriptor of a locked file.
type openLock struct {
	*lockFile
	fd     int
	opened int // the client's Seq at the open
}

// lockFile is a file with several descriptors of a client.
type lockFile struct {
	name string
	era  int  // number of closes
	had  bool // the client has locked it
}

// openLock opens or creates a file, and makes the session of its later locks known: an unlock without a lock
// cannot be refused and changes nothing.
func (c *Client) openLock(file *lockFile) (*openLock, error) {
	fd, err := unix.Openat(c.dir, file.name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return nil, err
	}
	unlock := unix.Flock_t{Type: unix.F_UNLCK, Len: 1}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unlock); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	c.seq++
	return &openLock{lockFile: file, fd: fd, opened: c.seq}, nil
}

func (c *Client) lockCall(kind Kind, l *openLock) *LockCall {
	return &LockCall{Record: c.record(), File: l.name, Pid: os.Getpid(), Kind: kind, Opened: l.opened, Era: l.era}
}

// use makes a call through a descriptor, other than lock calls.
func (c *Client) use(kind Kind, l *openLock) (*LockCall, error) {
	call := c.lockCall(kind, l)
	err := c.recorder.Do(call, func() error {
		var err error
		switch kind {
		case Read:
			_, err = unix.Pread(l.fd, make([]byte, 1), 0)
		case Close:
			err = unix.Close(l.fd)
		default:
			err = fmt.Errorf("%q is none of that", kind)
		}
		return err
	})
	if kind == Close {
		l.era++
	}
	return call, err
}

// writePid writes a pid over an earlier one, like programs with a lock: the client's own, or that of a
// short-lived helper.
func (c *Client) writePid(l *openLock, byHelper bool) (*LockCall, error) {
	pid := os.Getpid()
	if byHelper {
		helper := exec.Command("cat")
		stdin, err := helper.StdinPipe()
		if err != nil {
			return nil, err
		}
		if err := helper.Start(); err != nil {
			return nil, err
		}
		defer func() {
			_ = stdin.Close()
			_ = helper.Wait()
		}()
		pid = helper.Process.Pid
	}
	call := c.lockCall(Write, l)
	return call, c.recorder.Do(call, func() error {
		_, err := unix.Pwrite(l.fd, fmt.Appendf(nil, "%10d\n", pid), 0)
		return err
	})
}

// die kills this process, which closes its files.
func (c *Client) die(open []*openLock) error {
	for _, l := range open {
		if err := c.recorder.begin(c.lockCall(Close, l)); err != nil {
			return err
		}
	}
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}

// tryLock does not wait.
func (c *Client) tryLock(kind Kind, l *openLock, mode Mode, in Range) (*LockCall, error) {
	call := c.lockCall(kind, l)
	call.Mode, call.Range = mode, in
	return call, c.recorder.Do(call, func() error {
		if kind == Flock {
			return unix.Flock(l.fd, flockOf(mode)|unix.LOCK_NB)
		}
		return c.fcntl(l, call, map[Kind]int{
			Posix: unix.F_SETLK, OFD: unix.F_OFD_SETLK, TestPosix: unix.F_GETLK, TestOFD: unix.F_OFD_GETLK,
		}[kind])
	})
}

// waitLock interrupts the wait after some time.
func (c *Client) waitLock(kind Kind, l *openLock, mode Mode, in Range, limit time.Duration) (*LockCall, error) {
	call := c.lockCall(kind, l)
	call.Mode, call.Range, call.Wait = mode, in, true
	return call, c.recorder.Do(call, func() error {
		defer interruptAfter(limit)()
		if kind == Flock {
			return unix.Flock(l.fd, flockOf(mode))
		}
		return c.fcntl(l, call, map[Kind]int{Posix: unix.F_SETLKW, OFD: unix.F_OFD_SETLKW}[kind])
	})
}

func flockOf(mode Mode) int {
	return map[Mode]int{NoLock: unix.LOCK_UN, ReadLock: unix.LOCK_SH, WriteLock: unix.LOCK_EX}[mode]
}

var fcntlTypes = map[Mode]int16{NoLock: unix.F_UNLCK, ReadLock: unix.F_RDLCK, WriteLock: unix.F_WRLCK}

// fcntl stores the result of a test in the call's Got.
func (c *Client) fcntl(l *openLock, call *LockCall, command int) error {
	lock := unix.Flock_t{Type: fcntlTypes[call.Mode], Start: int64(call.Range.First)}
	if call.Range.Last < beyond {
		lock.Len = int64(call.Range.Last - call.Range.First + 1)
	}
	err := unix.FcntlFlock(uintptr(l.fd), command, &lock)
	if err != nil || !call.tests() || lock.Type == unix.F_UNLCK {
		return err
	}
	call.Got = LockSeen{Mode: ReadLock, Range: Range{First: int(lock.Start), Last: beyond}, Pid: int(lock.Pid)}
	if lock.Type == unix.F_WRLCK {
		call.Got.Mode = WriteLock
	}
	if lock.Len != 0 {
		call.Got.Range.Last = int(lock.Start + lock.Len - 1)
	}
	return nil
}
