package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// diskSize is the largest size in memory of each of the three disks.
const diskSize = 1 << 30

// flushes is the number of measured fsync calls.
const flushes = 500

// diskOf returns the data directory of the i-th node of each contestant.
func (s *settings) diskOf(i int) string {
	if s.disks {
		return filepath.Join(s.dir, "disk-"+serverNames[i])
	}
	return s.dir
}

// makeDisks gives each node its own disk: a loop device on a file in memory. Its flush takes as long as on
// the disk of s.dir.
func (s *settings) makeDisks(ctx context.Context, d *daemons) error {
	real, err := fsyncTime(s.dir)
	if err != nil {
		return err
	}
	if err := s.makeDisk(ctx, d, s.dir+"/disk-trial", 0); err != nil {
		return err
	}
	fast, err := fsyncTime(s.dir + "/disk-trial")
	if err != nil {
		return err
	}
	for i := range serverNames {
		if err := s.makeDisk(ctx, d, s.diskOf(i), max(0, real-fast)); err != nil {
			return err
		}
	}
	slow, err := fsyncTime(s.diskOf(0))
	fmt.Printf("three disks in memory: an append and fsync takes %v there, %v on the disk below %s, %v without a delay of the flush\n", slow, real, s.parent, fast)
	return err
}

func (s *settings) makeDisk(ctx context.Context, d *daemons, at string, delay time.Duration) error {
	memory, slow := at+".memory", at+".slow"
	for _, dir := range []string{memory, slow, at} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("memory", memory, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	image, err := os.Create(memory + "/image")
	if err != nil {
		return err
	}
	if err := image.Truncate(diskSize); err != nil {
		return err
	}
	if err := image.Close(); err != nil {
		return err
	}
	if _, err := d.start(filepath.Base(at), "slowdisk: ready", s.program("slowdisk"), memory, slow, delay.String()); err != nil {
		return err
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", slow + "/image"}, {"mount", "-o", "loop", slow + "/image", at}} {
		if _, err := output(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// fsyncTime returns the median time to append a short entry to a preallocated file, like a log, and to sync
// it.
func fsyncTime(dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // removed with the directory
	defer file.Close()           //nolint:errcheck // its content does not matter
	entry := make([]byte, 200)
	if _, err := file.Write(make([]byte, flushes*len(entry))); err != nil {
		return 0, err
	}
	var took []float64
	for i := range flushes {
		began := time.Now()
		if _, err := file.WriteAt(entry, int64(i*len(entry))); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began)))
	}
	return time.Duration(middle(took)).Round(time.Microsecond), nil
}
