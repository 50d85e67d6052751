package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// diskWrites is the number of timed writes.
const diskWrites = 50

// Limits for the latency of a write. Each change waits for the disks of a quorum; after 0.75 s without
// contact to the leader an election starts.
const (
	slowMedian = 20 * time.Millisecond
	slowP99    = 100 * time.Millisecond
	worstP99   = 750 * time.Millisecond
)

func lookAtDisk(_ context.Context, h *host) []Finding {
	return h.eachData(func(dir string) Finding {
		took, err := h.syncedWrites(dir, diskWrites)
		if err != nil {
			return unknown("run it as the user of the server", "%s: writes cannot be timed: %v", dir, err)
		}
		slices.Sort(took)
		median, p99 := took[len(took)/2], took[(len(took)*99-1)/100]
		says := fmt.Sprintf("%s: a small write is on disk after %v in the median, %v in the 99th percentile of %d",
			dir, round(median), round(p99), len(took))
		switch {
		case p99 > worstP99:
			return failed("give the directory a disk of its own: slow writes cause elections", "%s", says)
		case median > slowMedian, p99 > slowP99:
			return warning("an SSD with power-loss protection takes less than 1 ms; each change waits for the disks of a quorum", "%s", says)
		}
		return ok("%s", says)
	})
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// syncedWrites times small synced writes to a file in a directory. If possible, the file has no name.
func syncedWrites(dir string, count int) ([]time.Duration, error) {
	file, err := unnamedFile(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	entry := make([]byte, 512)
	took := make([]time.Duration, count)
	for i := range took {
		began := time.Now()
		if _, err := file.Write(entry); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return nil, os.NewSyscallError("fdatasync", err)
		}
		took[i] = time.Since(began)
	}
	return took, nil
}

func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	file, err := os.CreateTemp(dir, ".lockfs-doctor-*")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}
