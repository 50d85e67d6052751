package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// place is a name in an open directory. System calls are relative to it, as in a program that works in the
// directory, so its depth costs nothing.
type place struct {
	dir  int // descriptor
	name string
	path string // for messages
}

// folder is an open directory.
type folder struct {
	path string
	fd   int
}

// makeFolder creates a folder with a new name.
func makeFolder(in string) (folder, error) {
	path, err := os.MkdirTemp(in, "")
	if err != nil {
		return folder{}, err
	}
	return openFolder(path)
}

func openFolder(path string) (folder, error) {
	fd, err := place{dir: unix.AT_FDCWD, name: path, path: path}.open(unix.O_RDONLY | unix.O_DIRECTORY)
	return folder{path, fd}, err
}

func (f folder) place(name string) place { return place{f.fd, name, filepath.Join(f.path, name)} }
func (f folder) close()                  { _ = unix.Close(f.fd) }

// content has the length of a host name and a pid.
var content = []byte("host-of-holder 4711\n")

// open retries after signals of the Go runtime, like the os package.
func (p place) open(flags int) (int, error) {
	for {
		fd, err := unix.Openat(p.dir, p.name, flags|unix.O_CLOEXEC, 0o644)
		if err != unix.EINTR {
			return fd, p.failed("open", err)
		}
	}
}

// create creates an open lock without content.
func (p place) create() (int, error) { return p.open(unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY) }

// take creates a lock.
func (p place) take() error {
	fd, err := p.create()
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, content); err != nil {
		_ = unix.Close(fd)
		return p.failed("write", err)
	}
	return p.failed("close", unix.Close(fd))
}

func (p place) unlink() error { return p.failed("unlink", unix.Unlinkat(p.dir, p.name, 0)) }

// lock waits for the flock of an open file.
func (p place) lock(fd int) error {
	for {
		err := unix.Flock(fd, unix.LOCK_EX)
		if err != unix.EINTR {
			return p.failed("flock", err)
		}
	}
}

func (p place) unlock(fd int) error { return p.failed("unlock", unix.Flock(fd, unix.LOCK_UN)) }

func (p place) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: p.path, Err: err}
}
