package main

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Measurement is a kind of measurement.
type Measurement struct {
	Name  string
	About string

	targets func(spaces []space, together bool) []target
	prepare func(ctx context.Context, t target, p *Plan) (trial, error)
}

// All are all measurements.
var All = []Measurement{
	{"cycle", "a lock: exclusive create, write of 20 bytes, close, unlink", inTurn, crewOf(cycle)},
	{"mkdir", "a lock: mkdir, rmdir", inTurn, crewOf(mkdir)},
	{"stat", "stat of a held lock", inTurn, crewOf(stat)},
	{"cat", "open, read, close of a held lock", inTurn, crewOf(cat)},
	{"flock", "flock and unlock of an open file", inTurn, crewOf(flock)},
	{"list", "listing of a directory of 100 files", inTurn, inOneDir(crewOf(list))},
	{"handover-flock", "from the unlock to the lock of who waits in flock", inPairs, handoverOf(newFlocker)},
	{"handover-create", "from the unlink to the create of who tries without a pause", inPairs, handoverOf(newCreator)},
}

func names() (names []string) {
	for _, m := range All {
		names = append(names, m.Name)
	}
	return names
}

func cycle(p place) (job, error) {
	return job{once: func() error {
		if err := p.take(); err != nil {
			return err
		}
		return p.unlink()
	}}, nil
}

func mkdir(p place) (job, error) {
	return job{once: func() error {
		if err := unix.Mkdirat(p.dir, p.name, 0o755); err != nil {
			return p.failed("mkdir", err)
		}
		return p.failed("rmdir", unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR))
	}}, nil
}

func stat(p place) (job, error) {
	var found unix.Stat_t
	return job{once: func() error {
		return p.failed("stat", unix.Fstatat(p.dir, p.name, &found, 0))
	}}, p.take()
}

func cat(p place) (job, error) {
	buffer := make([]byte, 4096)
	return job{once: func() error {
		fd, err := p.open(unix.O_RDONLY)
		if err != nil {
			return err
		}
		return p.drain(fd, func() (int, error) { return unix.Read(fd, buffer) })
	}}, p.take()
}

// drain reads to the end and closes.
func (p place) drain(fd int, read func() (int, error)) error {
	for {
		n, err := read()
		if err != nil {
			_ = unix.Close(fd)
			return p.failed("read", err)
		}
		if n == 0 {
			return p.failed("close", unix.Close(fd))
		}
	}
}

func flock(p place) (job, error) {
	fd, err := p.open(unix.O_CREAT | unix.O_RDWR)
	if err != nil {
		return job{}, err
	}
	return job{
		once: func() error {
			if err := p.lock(fd); err != nil {
				return err
			}
			return p.unlock(fd)
		},
		end: func() { _ = unix.Close(fd) },
	}, nil
}

const listed = 100

// list uses one directory for all workers of a folder.
func list(p place) (job, error) {
	p.name, p.path = "listed", filepath.Join(filepath.Dir(p.path), "listed")
	if err := unix.Mkdirat(p.dir, p.name, 0o755); err == nil {
		if err := fill(p.path); err != nil {
			return job{}, err
		}
	} else if err != unix.EEXIST {
		return job{}, p.failed("mkdir", err)
	}
	buffer := make([]byte, 32<<10)
	return job{once: func() error {
		fd, err := p.open(unix.O_RDONLY | unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		return p.drain(fd, func() (int, error) { return unix.ReadDirent(fd, buffer) })
	}}, nil
}

func fill(path string) error {
	f, err := openFolder(path)
	if err != nil {
		return err
	}
	defer f.close()
	for i := range listed {
		if err := f.place(fmt.Sprint("lock", i)).take(); err != nil {
			return err
		}
	}
	return nil
}
