package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Client makes calls in one directory and records them. It is for one goroutine. It keeps the directory open,
// so no lookup reaches the directory below a lost mount.
type Client struct {
	recorder *Recorder
	id       int
	host     string
	path     string
	seq      int
	dir      int   // descriptor; -1: none
	fsType   int64 // of the directory
}

// NewClient returns a client without an open directory.
func NewClient(recorder *Recorder, id int, host, path string) *Client {
	return &Client{recorder: recorder, id: id, host: host, path: path, dir: -1, fsType: unix.FUSE_SUPER_MAGIC}
}

// remountPatience limits the wait for the directory.
const (
	remountPatience = 60 * time.Second
	remountInterval = 20 * time.Millisecond
)

// Enter opens the directory, again if it was open, once a FUSE file system is mounted.
func (c *Client) Enter() error {
	c.Leave()
	deadline := time.Now().Add(remountPatience)
	for {
		fd, err := unix.Open(c.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			var fs unix.Statfs_t
			if err = unix.Fstatfs(fd, &fs); err == nil && fs.Type == c.fsType {
				c.dir = fd
				return nil
			}
			_ = unix.Close(fd)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not there: %w", c.path, errors.Join(err, unix.ETIME))
		}
		time.Sleep(remountInterval)
	}
}

// Leave closes the directory.
func (c *Client) Leave() {
	if c.dir >= 0 {
		_ = unix.Close(c.dir)
		c.dir = -1
	}
}

// File is an open file with a known inode.
type File struct {
	fd     int
	opened int // Seq of the call
	name   string
	Ino    uint64
	Dir    bool
}

// Close is not recorded: it has no visible effect.
func (f *File) Close() { _ = unix.Close(f.fd) }

const fileMode = 0o644

// Open does Create, Open or Look. The file is nil after an error, or if its inode is unknown.
func (c *Client) Open(kind Kind, name string) (*Call, *File, error) {
	flags := map[Kind]int{
		Create: unix.O_CREAT | unix.O_EXCL | unix.O_RDWR, Open: unix.O_CREAT | unix.O_RDWR, Look: unix.O_RDONLY,
	}[kind] | unix.O_CLOEXEC | unix.O_NOFOLLOW
	call := c.call(kind, name)
	file := &File{fd: -1, opened: call.Seq, name: name}
	err := c.recorder.Do(call, func() (err error) {
		file.fd, err = unix.Openat(c.dir, name, flags, fileMode)
		if err != nil {
			return err
		}
		// The number never changes, so the time of this query does not matter.
		var st unix.Stat_t
		if unix.Fstat(file.fd, &st) == nil {
			file.Ino, file.Dir = st.Ino, isDir(&st)
			call.Got.Ino, call.Got.Dir = file.Ino, file.Dir
		}
		return nil
	})
	if file.fd >= 0 && file.Ino == 0 {
		file.Close()
	}
	if file.Ino == 0 {
		return call, nil, err
	}
	return call, file, err
}

// Do makes a call with names.
func (c *Client) Do(kind Kind, names ...string) (*Call, error) {
	call := c.call(kind, names...)
	err := c.recorder.Do(call, func() error {
		switch kind {
		case Mkdir:
			return unix.Mkdirat(c.dir, call.Name, 0o755)
		case Rmdir:
			return unix.Unlinkat(c.dir, call.Name, unix.AT_REMOVEDIR)
		case Unlink:
			return unix.Unlinkat(c.dir, call.Name, 0)
		case Link:
			return unix.Linkat(c.dir, call.Name, c.dir, call.To, 0)
		case Rename:
			return unix.Renameat2(c.dir, call.Name, c.dir, call.To, 0)
		case NoReplace:
			return unix.Renameat2(c.dir, call.Name, c.dir, call.To, unix.RENAME_NOREPLACE)
		case Stat:
			var st unix.Stat_t
			err := unix.Fstatat(c.dir, call.Name, &st, unix.AT_SYMLINK_NOFOLLOW)
			call.Got = gotStat(&st)
			return err
		case List:
			return c.list(call)
		}
		return fmt.Errorf("%q takes no names", kind)
	})
	return call, err
}

// DoFile makes a call on an open file.
func (c *Client) DoFile(kind Kind, file *File, data string) (*Call, error) {
	call := c.call(kind, file.name)
	call.Opened, call.Ino, call.Data = file.opened, file.Ino, data
	flags := 0
	if kind == Append {
		flags = unix.O_APPEND
	}
	if kind == Append || kind == Write {
		// Local to the kernel; the flags come with each write.
		if _, err := unix.FcntlInt(uintptr(file.fd), unix.F_SETFL, flags); err != nil {
			return nil, fmt.Errorf("set flags: %w", err)
		}
	}
	err := c.recorder.Do(call, func() error {
		switch kind {
		case Write, Append:
			n, err := unix.Pwrite(file.fd, []byte(data), 0)
			if err == nil && n != len(data) {
				return fmt.Errorf("wrote %d bytes of %d", n, len(data))
			}
			return err
		case Truncate:
			return unix.Ftruncate(file.fd, 0)
		case Read:
			buffer := make([]byte, 64<<10)
			n, err := unix.Pread(file.fd, buffer, 0)
			call.Got.Content = string(buffer[:max(n, 0)])
			return err
		case Fstat:
			var st unix.Stat_t
			err := unix.Fstat(file.fd, &st)
			call.Got = gotStat(&st)
			return err
		}
		return fmt.Errorf("%q takes no file", kind)
	})
	return call, err
}

// record returns the record for the client's next call.
func (c *Client) record() Record {
	c.seq++
	return Record{Client: c.id, Seq: c.seq, Host: c.host, Dir: filepath.Base(c.path)}
}

func (c *Client) call(kind Kind, names ...string) *Call {
	call := &Call{Record: c.record(), Kind: kind}
	if len(names) > 0 {
		call.Name = names[0]
	}
	if len(names) > 1 {
		call.To = names[1]
	}
	return call
}

// list reads the directory in one request, from the start through a new descriptor.
func (c *Client) list(call *Call) error {
	fd, err := unix.Openat(c.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	buffer := make([]byte, 64<<10)
	n, err := unix.Getdents(fd, buffer)
	if err != nil {
		return err
	}
	call.Got.Entries = make(map[string]uint64)
	for rest := buffer[:n]; len(rest) > 0; {
		// struct linux_dirent64: ino, offset, record length, type, name (getdents64(2)).
		const inoAt, lengthAt, nameAt = 0, 16, 19
		length := binary.NativeEndian.Uint16(rest[lengthAt:])
		name, _, _ := bytes.Cut(rest[nameAt:length], []byte{0})
		if string(name) != "." && string(name) != ".." {
			call.Got.Entries[string(name)] = binary.NativeEndian.Uint64(rest[inoAt:])
		}
		rest = rest[length:]
	}
	return nil
}

func gotStat(st *unix.Stat_t) Got {
	return Got{Ino: st.Ino, Dir: isDir(st), Nlink: uint32(st.Nlink), Size: st.Size}
}

func isDir(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }
