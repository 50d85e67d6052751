package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open must succeed. The descriptor is closed at the end of the case.
func (t *T) open(path string, flags int) (fd int) { return t.create(path, flags, 0o644) }

// create is open with a mode.
func (t *T) create(path string, flags int, mode uint32) (fd int) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
	t.ok(err, "open", path)
	t.cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// opening returns only the error of an open.
func opening(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// file creates a regular file or changes its content.
func (t *T) file(path, content string) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o644)
	t.ok(err, "open", path)
	t.write(fd, content)
	t.ok(unix.Close(fd))
}

// files creates empty files.
func (t *T) files(paths ...string) {
	for _, path := range paths {
		t.file(path, "")
	}
}

func (t *T) mkdir(paths ...string) {
	for _, path := range paths {
		t.ok(unix.Mkdir(path, dirMode), "mkdir", path)
	}
}

// write writes a whole text in one call.
func (t *T) write(fd int, text string) {
	if text == "" {
		return
	}
	n, err := unix.Write(fd, []byte(text))
	t.ok(err)
	t.equal(len(text), n, "bytes written")
}

// read returns the content of a file.
func (t *T) read(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	t.ok(err, "open", path)
	defer func() { _ = unix.Close(fd) }()
	return t.pread(fd)
}

// pread returns the content of an open file.
func (t *T) pread(fd int) string {
	var content []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Pread(fd, buffer, int64(len(content)))
		t.ok(err)
		if n == 0 {
			return string(content)
		}
		content = append(content, buffer[:n]...)
	}
}

func (t *T) stat(path string) unix.Stat_t {
	var st unix.Stat_t
	t.ok(unix.Stat(path, &st), "stat", path)
	return st
}

func (t *T) lstat(path string) unix.Stat_t {
	var st unix.Stat_t
	t.ok(unix.Lstat(path, &st), "lstat", path)
	return st
}

func (t *T) fstat(fd int) unix.Stat_t {
	var st unix.Stat_t
	t.ok(unix.Fstat(fd, &st))
	return st
}

// permissions returns the bits of a mode for chmod.
func (t *T) permissions(path string) uint32 { return t.lstat(path).Mode & 0o7777 }

func (t *T) missing(path string) {
	var st unix.Stat_t
	t.fails(unix.ENOENT, unix.Lstat(path, &st))
}

// past is a time to set before a change, to make the change visible.
var past = unix.Timespec{Sec: 1_000_000_000, Nsec: 123_456_789}

func (t *T) age(path string) {
	t.ok(unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{past, past}, unix.AT_SYMLINK_NOFOLLOW), "age", path)
}

// entry is an entry of a listing.
type entry struct {
	name   string
	ino    uint64
	kind   byte  // DT_REG and the like
	offset int64 // of the next one
}

// entries returns the result of one getdents64 with a buffer of the given size; none at the end.
func (t *T) entries(fd, size int) (list []entry) {
	buffer := make([]byte, size)
	n, err := unix.Getdents(fd, buffer)
	t.ok(err)
	for rest := buffer[:n]; len(rest) > 0; {
		// struct linux_dirent64: ino, offset, record length, type, name (getdents64(2)).
		const offsetAt, lengthAt, kindAt, nameAt = 8, 16, 18, 19
		length := binary.NativeEndian.Uint16(rest[lengthAt:])
		name, _, _ := bytes.Cut(rest[nameAt:length], []byte{0})
		list = append(list, entry{
			name: string(name), ino: binary.NativeEndian.Uint64(rest), kind: rest[kindAt],
			offset: int64(binary.NativeEndian.Uint64(rest[offsetAt:])),
		})
		rest = rest[length:]
	}
	return list
}

// listing returns the rest of an open directory, with the dots.
func (t *T) listing(fd int) (list []entry) {
	for {
		more := t.entries(fd, 4096)
		if len(more) == 0 {
			return list
		}
		list = append(list, more...)
	}
}

// names returns the names in a directory, sorted, without the dots.
func (t *T) names(path string) []string {
	fd := t.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	names := []string{}
	for _, e := range t.listing(fd) {
		if e.name != "." && e.name != ".." {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}

// readable waits for a descriptor and reports whether it became readable.
func (t *T) readable(fd int, limit time.Duration) bool {
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(limit.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		t.ok(err)
		return n > 0
	}
}

// These change only the calling thread; the functions of package unix change all threads.

// setIDs is setresuid(2) or setresgid(2). The saved id stays root's, for the way back.
func setIDs(call uintptr, id int) error {
	if _, _, errno := unix.RawSyscall(call, uintptr(id), uintptr(id), 0); errno != 0 {
		return errno
	}
	return nil
}

func setGroups(groups []uint32) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// futimens is utimensat(2) on an open file; without times it sets the current one.
func futimens(fd int, times *[2]unix.Timespec) error {
	if _, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(times)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// touch is utimensat(2) without times.
func touch(path string) error {
	bytes, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := unix.AT_FDCWD
	if _, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(at), uintptr(unsafe.Pointer(bytes)), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
