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

// Connection is a mount as the kernel has it, in whatever directories it is shown, so that it can be ended although its
// process cannot end: a thread of that may be inside the kernel for good, waiting for the lock of a directory which a program
// has that waits for an answer of this very process. It can be handed to another process.
type Connection struct {
	Dir    string
	Number uint32   // of the file system, as st_dev has it: another one may get it when this one is gone
	Device *os.File // /dev/fuse: the kernel keeps the mount alive until all processes that have it open have closed it
	Abort  *os.File // its file "abort" in fusectl; nil if that cannot be had

	shown *os.File // the directory that fusectl has for it; nil if it cannot be had
}

const (
	fusectl      = "fusectl"
	fusectlPath  = "/sys/fs/fuse/connections" // where fusectl is mounted, if it is
	fusectlAbort = "abort"                    // a file of each connection: whatever is written to it ends that

	// endPoll is how often the end of the file system is waited for.
	endPoll = time.Millisecond
)

// Open finds the mount at a directory, but for its Device (see [NewDevice]). It comes just after the mount, for the number of one
// that is gone is given to another. With an error there is a connection too, as far as it could be found.
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

// open is Open of a file system whose number is known.
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

// openFusectl prefers a mount of its own, which no directory shows and nobody has to unmount. Users other than root need one
// that is there.
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

// End ends the mount for all who use it, as the end of its process does: what waits for an answer gets an error, and so does
// whoever asks from now on. The mount itself stays where it is. Doing it twice is no error.
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

// force is all that there is without fusectl; it takes the mount away if nobody uses it.
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

// IsOver tells whether the kernel has let go.
func (c *Connection) IsOver() bool {
	ready := []unix.PollFd{{Fd: int32(c.Device.Fd())}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n > 0 && ready[0].Revents&unix.POLLERR != 0
}

// IsGone tells whether the file system is, by what fusectl shows of it, and waits for that as long as given: the kernel lets go
// of its process first.
func (c *Connection) IsGone(limit time.Duration) bool {
	if c.shown == nil {
		return false // nobody knows
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

// Detach takes the mount away from its directory, which is no error if that shows it no more: somebody may have taken it away,
// and mounted another there. For lazy see [Detach].
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
