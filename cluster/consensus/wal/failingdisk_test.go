package wal

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// failingDisk is one on which the next write fails, or the next fsync, or the next file that is made.
type failingDisk struct {
	types.VFS
	write, sync, create error
	loses               bool // what it cannot sync, and counts as synced from then on
}

// fails answers an error once.
func fails(next *error) error {
	err := *next
	*next = nil
	return err
}

func (d *failingDisk) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if err := fails(&d.create); err != nil {
		return nil, err
	}
	file, err := d.VFS.Create(dir, name, size)
	return &failingFile{WritableFile: file, disk: d}, err
}

func (d *failingDisk) OpenWriter(dir, name string) (types.WritableFile, error) {
	file, err := d.VFS.OpenWriter(dir, name)
	return &failingFile{WritableFile: file, disk: d}, err
}

type failingFile struct {
	types.WritableFile
	disk *failingDisk
	size int   // of what was written last
	at   int64 // where it stands
}

// WriteAt gets some whole sectors to the disk if it fails.
func (f *failingFile) WriteAt(p []byte, at int64) (int, error) {
	if err := fails(&f.disk.write); err != nil {
		end := (at + int64(len(p))) / sectorSize * sectorSize
		n, _ := f.WritableFile.WriteAt(p[:max(0, end-at)], at)
		return n, err
	}
	f.size, f.at = len(p), at
	return f.WritableFile.WriteAt(p, at)
}

func (f *failingFile) Sync() error {
	err := fails(&f.disk.sync)
	if err == nil {
		return f.WritableFile.Sync()
	}
	if f.disk.loses {
		_, lost := f.WritableFile.WriteAt(make([]byte, f.size), f.at)
		err = errors.Join(err, lost)
	}
	return err
}

// untilThereIsSpace does a write as what is above the log does (space.persist).
func untilThereIsSpace(write func() error) error {
	for {
		if err := write(); !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
}

// openFailing opens a log of twenty entries.
func openFailing(t *testing.T, persist Persist) (log *Log, disk *failingDisk, dir string) {
	t.Helper()
	dir, disk = filepath.Join(t.TempDir(), "log"), &failingDisk{VFS: walfs.New()}
	log, err := open(dir, false, testSegment, hclog.NewNullLogger(), segmentFiles{disk, persist})
	require.NoError(t, err)
	for index := uint64(1); index <= 20; index++ {
		require.NoError(t, log.StoreLog(entry(index)))
	}
	return log, disk, dir
}

// ends are how a process may end.
var ends = map[string]func(testing.TB, *Log){
	"closed": func(t testing.TB, log *Log) { require.NoError(t, log.Close()) },
	"killed": crash,
}

// TestAFullDiskIsWaitedFor has one write find no space. What raft asked for is done all the same, and all that it was told is there when the
// log is opened again.
func TestAFullDiskIsWaitedFor(t *testing.T) {
	t.Parallel()
	for what, fill := range map[string]func(*failingDisk){
		"a write":                       func(d *failingDisk) { d.write = unix.ENOSPC },
		"an fsync":                      func(d *failingDisk) { d.sync = unix.ENOSPC },
		"an fsync that loses the write": func(d *failingDisk) { d.sync, d.loses = unix.ENOSPC, true },
		"a file that is made":           func(d *failingDisk) { d.create = unix.ENOSPC },
	} {
		for how, end := range ends {
			t.Run(what+", "+how, func(t *testing.T) {
				log, disk, dir := openFailing(t, untilThereIsSpace)
				fill(disk)
				require.NoError(t, untilThereIsSpace(func() error { return log.DeleteRange(15, 20) }))
				require.NoError(t, log.StoreLog(entry(15)))
				fill(disk)
				for index := uint64(16); index <= 60; index++ { // another segment is begun
					require.NoError(t, untilThereIsSpace(func() error { return log.StoreLog(entry(index)) }))
				}
				end(t, log)
				log = mustOpen(t, dir, true)
				requireEntries(t, log, 1, 60)
				crash(t, log)
			})
		}
	}
}

// TestNothingIsWrittenAfterAFailure has a write fail for good. What raft asks for then is refused, as it would be missing, or damage, when
// the log is opened again.
func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	three := []*raft.Log{entry(21), entry(22), entry(23)}
	remove := func(log *Log) error { return log.DeleteRange(15, 20) }
	store := func(log *Log) error { return log.StoreLogs(three) }
	for _, row := range []struct {
		name string
		fail func(d *failingDisk, err error)
		do   func(*Log) error
		end  uint64 // of the log that is opened again
	}{
		{"a segment is not sealed", func(d *failingDisk, err error) { d.write = err }, remove, 20},
		{"a segment is sealed, and not synced", func(d *failingDisk, err error) { d.sync = err }, remove, 20},
		{"a segment is sealed, and that is lost", func(d *failingDisk, err error) { d.sync, d.loses = err, true }, remove, 20},
		{"the next segment is not made", func(d *failingDisk, err error) { d.create = err }, remove, 14},
		{"a batch is not written", func(d *failingDisk, err error) { d.write = err }, store, 20},
		{"a batch is not synced", func(d *failingDisk, err error) { d.sync = err }, store, 23},
		{"a batch is lost", func(d *failingDisk, err error) { d.sync, d.loses = err, true }, store, 20},
	} {
		for _, failure := range []error{unix.EIO, unix.ENOSPC} { // on a full disk for which nobody waits
			for how, end := range ends {
				t.Run(row.name+", "+failure.Error()+", "+how, func(t *testing.T) {
					log, disk, dir := openFailing(t, Once)
					row.fail(disk, failure)
					require.ErrorIs(t, row.do(log), failure)
					for _, again := range []func(*Log) error{row.do, remove, func(log *Log) error { return log.StoreLog(entry(21)) }} {
						err := again(log)
						require.ErrorContains(t, err, failure.Error())
						require.NotErrorIs(t, err, failure, "nobody waits for what cannot be done again")
					}
					end(t, log)
					log = mustOpen(t, dir, true)
					requireEntries(t, log, 1, row.end)
					require.NoError(t, log.StoreLog(entry(row.end+1)))
					crash(t, log)
					requireEntries(t, mustOpen(t, dir, true), 1, row.end+1)
				})
			}
		}
	}
}
