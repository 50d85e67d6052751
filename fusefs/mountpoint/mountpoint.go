package mountpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime is how long a mount may take to show that it is alive.
const answerTime = 2 * time.Second

// Source returns the source, as in /proc/mounts, of a live lockfs mount at a directory. found is false if
// there is none.
func Source(dir string) (source string, found bool, err error) {
	there, err := inspect(dir)
	if err != nil || there == nil || there.stale {
		return "", false, err
	}
	return there.source, true, nil
}

// State reports whether the process of a lockfs mount has ended. An error says why this is unknown, for
// example because the mount does not answer.
func State(dir string) (dead bool, err error) {
	there, err := inspect(dir)
	switch {
	case err != nil:
		return false, err
	case there == nil:
		return false, errors.New("lockfs is not mounted there")
	}
	return there.stale, nil
}

type lockfsMount struct {
	source string
	stale  bool // its process is dead
}

// inspect returns the lockfs mount at a directory; nil if there is none.
func inspect(dir string) (there *lockfsMount, err error) {
	fd, _, there, err := inspectOpen(dir)
	if err == nil {
		err = unix.Close(fd)
	}
	return there, err
}

// inspectOpen returns the lockfs mount at a directory, nil if there is none, and a descriptor of the top
// mount there, opened by path only. It triggers no automount: the automount may wait for this process.
func inspectOpen(dir string) (fd int, path string, there *lockfsMount, err error) {
	fd, err = unix.Open(filepath.Clean(dir), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if path, err = pathOf(fd); err != nil {
		return -1, "", nil, err
	}
	m, err := mountOf(fd)
	if err != nil {
		return -1, "", nil, err
	}
	if m == nil || !m.isOurs() || m.point != path {
		return fd, path, nil, checkDirectory(fd)
	}
	there = &lockfsMount{source: m.source}
	switch err := stat(fd); {
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNABORTED):
		there.stale = true
	case errors.Is(err, os.ErrDeadlineExceeded):
		return -1, "", nil, errors.New("lockfs is mounted there already and does not answer")
	}
	return fd, path, there, nil
}

// checkDirectory returns ENOTDIR for anything but a directory.
func checkDirectory(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return nil
}

// pathOf returns the path of an open file, without symbolic links.
func pathOf(fd int) (string, error) { return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) }

// stat asks a file system which may never answer. Its goroutine closes the descriptor after the answer.
func stat(fd int) error {
	own, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() {
		var st unix.Stat_t
		answer <- unix.Fstat(own, &st)
		_ = unix.Close(own)
	}()
	select {
	case err := <-answer:
		return err
	case <-time.After(answerTime):
		return os.ErrDeadlineExceeded
	}
}

// mountOf returns the mount of an open file; nil if it is outside this process's namespace.
func mountOf(fd int) (*mountEntry, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return nil, err
	}
	id, err := mountID(string(info))
	if err != nil {
		return nil, err
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(mounts, func(m mountEntry) bool { return m.id == id })
	if at < 0 {
		return nil, nil
	}
	return &mounts[at], nil
}

// mountID returns the mount in the fdinfo text of an open file.
func mountID(fdinfo string) (int, error) {
	for line := range strings.Lines(fdinfo) {
		if value, is := strings.CutPrefix(line, "mnt_id:"); is {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, errors.New("the kernel does not say which mount a directory is in")
}

// Detach unmounts. With lazy it succeeds while the mount is in use: the mount disappears now, and ends with
// its last user.
func Detach(path string, lazy bool) error {
	if Privileged() {
		flags := unix.UMOUNT_NOFOLLOW
		if lazy {
			flags |= unix.MNT_DETACH
		}
		return unix.Unmount(path, flags)
	}
	args := []string{"-u", path}
	if lazy {
		args = []string{"-u", "-z", path}
	}
	output, err := exec.Command(fusermount, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", fusermount, err, bytes.TrimSpace(output))
	}
	return nil
}
