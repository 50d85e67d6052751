package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// measurement is one measured operation.
type measurement struct {
	name, about string
	// measure returns at least one sample, or an error. elapsed is the time of the workers; 0: there were
	// pauses.
	measure func(ctx context.Context, f folder, plan Plan) (took []time.Duration, elapsed time.Duration, err error)
}

// all lists the measurements.
var all = []measurement{
	{"cycle", "a lock: exclusive create, write of 20 bytes, close, unlink", byWorkers(cycle)},
	{"mkdir", "a lock: mkdir, rmdir", byWorkers(mkdir)},
	{"stat", "stat of a held lock", byWorkers(stat)},
	{"cat", "open, read, close of a held lock", byWorkers(cat)},
	{"flock", "flock and unlock of an open file", byWorkers(flock)},
	{"list", "listing of a directory of 100 files", byWorkers(list)},
	{"handover-flock", "from the unlock to the lock of a waiter in flock", byHandover(newFlocker)},
	{"handover-create", "from the unlink to the create of a program trying without a pause", byHandover(newCreator)},
}

func names() (names []string) {
	for _, m := range all {
		names = append(names, m.name)
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
	return job{
		once: func() error { return p.failed("stat", unix.Fstatat(p.dir, p.name, &found, 0)) },
		end:  func() { _ = p.unlink() },
	}, p.take()
}

func cat(p place) (job, error) {
	buffer := make([]byte, 4096)
	return job{
		once: func() error {
			fd, err := p.open(unix.O_RDONLY)
			if err != nil {
				return err
			}
			return p.drain(fd, func() (int, error) { return unix.Read(fd, buffer) })
		},
		end: func() { _ = p.unlink() },
	}, p.take()
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
		end: func() {
			_ = unix.Close(fd)
			_ = p.unlink()
		},
	}, nil
}

const listed = 100

// list uses one directory for all workers.
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
