package mountpoint

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// maxStale limits the stacked dead mounts to clean up.
const maxStale = 16

// Flags for move_mount; beneath is MOVE_MOUNT_BENEATH of Linux 6.5.
const (
	onTop   = 0
	beneath = 0x200
)

// Place is a directory for a mount. A dead mount may still cover it, until the new mount is there: the
// directory below must never be visible. Programs would create locks in it.
type Place struct {
	Path string // without symbolic links

	seen   *os.File // the top mount there, opened by path only
	dead   bool     // the top is a dead lockfs mount
	logger *slog.Logger
}

// Prepare makes a directory ready for a mount. It removes dead mounts, except for the lowest one. Users other
// than root need fusermount3, which cannot mount on a dead mount: for them it also removes the lowest.
func Prepare(dir string, logger *slog.Logger) (*Place, error) {
	for range maxStale {
		fd, path, there, err := inspectOpen(dir)
		if err != nil {
			return nil, err
		}
		place := &Place{Path: path, seen: os.NewFile(uintptr(fd), path), dead: there != nil && there.stale, logger: logger}
		if there != nil && !there.stale {
			return nil, errors.Join(errors.New("lockfs is mounted there already"), place.Close())
		}
		stack, err := mountsAt(path)
		if err != nil {
			return nil, errors.Join(err, place.Close())
		}
		isLowest := len(stack) < 2 || !stack[len(stack)-2].isOurs()
		if !place.dead || isLowest && Privileged() {
			return place, nil
		}
		logger.Info("unmounting a dead mount", "dir", path)
		if err := errors.Join(place.Close(), Detach(path, true)); err != nil {
			return nil, fmt.Errorf("a dead process left its mount there, which cannot be unmounted: %w", err)
		}
	}
	return nil, errors.New("too many dead mounts on top of each other")
}

// Close releases the directory.
func (p *Place) Close() error { return p.seen.Close() }

// Attach mounts a file system at the place, beneath a dead mount, and then removes the dead one. On older
// kernels the new mount goes on top and the dead one stays: only the top mount can be removed.
func (p *Place) Attach(fs *FileSystem) (*Connection, error) {
	how := onTop
	if p.dead {
		how = beneath
	}
	m, err := p.attach(fs.root, how)
	if errors.Is(err, unix.EINVAL) && how == beneath { // before Linux 6.5, or at the root of all mounts
		m, err = p.attach(fs.root, onTop)
	}
	if err != nil {
		return nil, err
	}
	connection := open(p.Path, m.device)
	if !p.dead {
		return connection, nil
	}
	if top, err := mountedAt(p.Path); err != nil || top == nil || top.id == m.id {
		p.logger.Info("the dead mount stays under the new one", "dir", p.Path)
		return connection, err
	}
	if err := Detach(p.Path, true); err != nil {
		return connection, fmt.Errorf("a dead process left its mount there, which cannot be unmounted: %w", err)
	}
	return connection, nil
}

// attach mounts at the place, and returns the mount.
func (p *Place) attach(root *os.File, how int) (*mountEntry, error) {
	const byDescriptors = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(int(root.Fd()), "", int(p.seen.Fd()), "", byDescriptors|how); err != nil {
		return nil, os.NewSyscallError("move_mount", err)
	}
	m, err := mountOf(int(root.Fd()))
	if err == nil && m == nil {
		err = fmt.Errorf("%s is not among the mounts", p.Path)
	}
	return m, err
}
