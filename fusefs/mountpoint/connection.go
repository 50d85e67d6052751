package mountpoint

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Connection is a mount in the kernel, independent of the directories where it is mounted. Another process
// can get it. It can end the mount even if the mount's process cannot exit. A thread of that process may wait
// in the kernel for a directory's lock. The lock's holder may be a program which waits for an answer of the
// same process.
type Connection struct {
	Dir    string
	Number uint32   // of the file system, as in st_dev; reused after its end
	Device *os.File // /dev/fuse: the mount lives until all processes with it open have closed it
	Abort  *os.File // its file "abort" in fusectl; nil if unavailable

	shown *os.File // its directory in fusectl; nil if unavailable
}

const (
	fusectl      = "fusectl"
	fusectlPath  = "/sys/fs/fuse/connections" // the usual mount of fusectl
	fusectlAbort = "abort"                    // a file of each connection: a write ends the connection

	// endPoll is the pause between checks for the end of the file system.
	endPoll = time.Millisecond
)

// Open finds the mount at a directory, without its Device (see [NewDevice]). Call it just after the mount, as
// the kernel reuses numbers. Together with an error it returns a connection as far as found.
func Open(dir string) (*Connection, error) {
	m, err := mountedAt(dir)
	if err == nil && m == nil {
		err = fmt.Errorf("%s is not among the mounts", dir)
	}
	if err != nil {
		return &Connection{Dir: dir}, err
	}
	return open(dir, m.device), nil
}

// open is Open for a file system with a known number.
func open(dir string, number uint32) *Connection {
	c := &Connection{Dir: dir, Number: number}
	control, err := openFusectl()
	if err != nil {
		return c
	}
	defer func() { _ = unix.Close(control) }()
	fd, err := unix.Openat(control, strconv.FormatUint(uint64(number), 10), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return c
	}
	c.shown = os.NewFile(uintptr(fd), fusectl)
	if fd, err = unix.Openat(fd, fusectlAbort, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		c.Abort = os.NewFile(uintptr(fd), fusectl+"/"+fusectlAbort)
	}
	return c
}

// openFusectl prefers a private mount, which is in no directory and needs no unmount. Users other than root
// need an existing one.
func openFusectl() (fd int, err error) {
	fs, err := unix.Fsopen(fusectl, unix.FSOPEN_CLOEXEC)
	if err == nil {
		defer func() { _ = unix.Close(fs) }()
		err = unix.FsconfigCreate(fs)
	}
	if err == nil {
		const attributes = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
		if fd, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes); err == nil {
			return fd, nil
		}
	}
	return unix.Open(fusectlPath, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// End ends the mount for all users, as the end of its process does: waiting and later requests get errors.
// The mount stays in its directory. A second call has no effect.
func (c *Connection) End() error {
	if c.Abort != nil {
		_, err := c.Abort.Write([]byte("1"))
		return err // nil too if the file system is gone
	}
	if err := c.force(); err != nil {
		return fmt.Errorf("cannot end the mount at %s: %w", c.Dir, err)
	}
	return nil
}

// force ends the mount without fusectl; it unmounts an unused one.
func (c *Connection) force() error {
	if c.IsOver() {
		return nil
	}
	if m, err := mountedAt(c.Dir); err != nil || m == nil || m.device != c.Number {
		return errors.Join(fmt.Errorf("it is not there any more, and %s is not mounted", fusectl), err)
	}
	if err := unix.Unmount(c.Dir, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EBUSY) {
		return err
	}
	return nil
}

// IsOver reports whether the kernel has ended the connection.
func (c *Connection) IsOver() bool {
	ready := []unix.PollFd{{Fd: int32(c.Device.Fd())}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0 && ready[0].Revents&unix.POLLERR != 0
}

// IsGone reports whether the file system is gone, as far as fusectl shows, and waits for it up to a limit:
// the kernel ends the connection first.
func (c *Connection) IsGone(limit time.Duration) bool {
	if c.shown == nil {
		return false // unknown
	}
	for end := time.Now().Add(limit); ; time.Sleep(endPoll) {
		var st unix.Stat_t
		if unix.Fstatat(int(c.shown.Fd()), fusectlAbort, &st, 0) == unix.ENOENT {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Detach unmounts the mount from its directory. It returns no error if it is already gone, also with another
// mount in its place. For lazy see [Detach].
func (c *Connection) Detach(lazy bool) error {
	stack, err := mountsAt(c.Dir)
	if err != nil {
		return err
	}
	isOurs := func(m mountEntry) bool { return m.device == c.Number }
	switch {
	case !slices.ContainsFunc(stack, isOurs):
		return nil
	case !isOurs(stack[len(stack)-1]):
		return errors.New("something else is mounted over it")
	}
	return Detach(c.Dir, lazy)
}

// Files returns the files for another process; nil for an unavailable one.
func (c *Connection) Files() []*os.File { return []*os.File{c.Device, c.Abort, c.shown} }

// Inherit returns the connection for files of another process, in the order of [Connection.Files].
func Inherit(dir string, number uint32, files []*os.File) *Connection {
	return &Connection{Dir: dir, Number: number, Device: files[0], Abort: files[1], shown: files[2]}
}
