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

// diskWrites is how many writes are timed.
const diskWrites = 50

// How long a write may take. Every change waits for the disks of a majority; a leader that is silent for 0.75 s is succeeded.
const (
	slowMedian = 20 * time.Millisecond
	slowP99    = 100 * time.Millisecond
	worstP99   = 750 * time.Millisecond
)

func lookAtDisk(_ context.Context, h *host) []Finding {
	return h.eachData(func(dir string) Finding {
		took, err := h.syncedWrites(dir, diskWrites)
		if err != nil {
			return unknown("run it as the user that the server runs as", "%s: writes cannot be timed: %v", dir, err)
		}
		slices.Sort(took)
		median, p99 := took[len(took)/2], took[(len(took)*99-1)/100]
		says := fmt.Sprintf("%s: a small write is on disk after %v in the median, %v in the 99th percentile of %d",
			dir, round(median), round(p99), len(took))
		switch {
		case p99 > worstP99:
			return failed("give it a disk of its own, without others' writes: leaders will change for no other reason", "%s", says)
		case median > slowMedian, p99 > slowP99:
			return warning("an SSD with power-loss protection takes less than 1 ms; every change waits for a majority of the disks", "%s", says)
		}
		return ok("%s", says)
	})
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// syncedWrites times small writes to a file in a directory, each until it is on disk as one of the log is. The file never has a
// name where the file system can do without.
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
