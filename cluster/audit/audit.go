// Package audit writes a file of events, one JSON object a line, in the order of their numbers.
//
// A replicated state machine repeats its events after a restart. So the file itself contains its last number
// and skips repeated events. It needs no sync for each event: the state machine repeats events lost in a
// crash. A line torn by a crash or a full disk never stays in the middle of the file.
//
// The package rotates the file itself. The library lumberjack never syncs, ignores a moved file, and hides
// the file, so the package could not truncate a torn line.
package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
)

// Config configures a log.
type Config struct {
	Path    string
	MaxSize int64        // size limit of the file in bytes; a single line may be larger
	Keep    int          // number of rotated files, newest at Path.1; a lower number removes no existing ones
	Some    bool         // the file has selected events only, so gaps are normal
	Logger  *slog.Logger // logs torn lines, a moved file and gaps; nil: disabled
}

// Log is an append-only file of events. Use it in one goroutine of one process.
type Log struct {
	cfg  Config
	file *os.File
	last uint64
	torn bool // the file may end with part of a failed write
}

// Open opens the file or creates it. It removes a torn line from the end. If the file ends with anything but
// an event, Open returns an error and does not change the file.
func Open(cfg Config) (*Log, error) {
	if cfg.MaxSize < 1 || cfg.Keep < 1 { // a new file continues after the newest rotated one
		return nil, errors.New("audit file: its size and the number of rotated files must be at least 1")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{cfg: cfg}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	for i := 1; i <= cfg.Keep && l.last == 0; i++ {
		last, err := settle(l.name(i), l.cfg.Logger)
		if err != nil {
			return nil, errors.Join(err, l.file.Close())
		}
		l.last = last
	}
	return l, nil
}

// Last returns the number of the last event in the file, or in the newest rotated file with events; 0: none.
func (l *Log) Last() uint64 { return l.last }

// Append writes the events after [Log.Last] and skips the others. After an error the caller may append the
// same lines again: each line is complete in the file or missing.
func (l *Log) Append(lines []Line) error {
	if err := l.follow(); err != nil {
		return err
	}
	lines, err := newer(lines, l.last)
	if err != nil {
		return err
	}
	for len(lines) > 0 {
		written, err := l.fill(lines)
		if err != nil {
			return err
		}
		lines = lines[written:]
	}
	return nil
}

// Close syncs and closes the file.
func (l *Log) Close() error {
	if err := errors.Join(l.file.Sync(), l.file.Close()); err != nil {
		return fmt.Errorf("audit file: %w", err)
	}
	return nil
}

// fill writes the lines with room in the file, and returns their number. The rest belongs to the next file.
func (l *Log) fill(lines []Line) (written int, err error) {
	info, err := l.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("audit file: %w", err)
	}
	size := info.Size()
	var batch []byte
	for _, line := range lines {
		grown := size + int64(len(batch)+len(line.JSON)+1)
		if grown > l.cfg.MaxSize && size+int64(len(batch)) > 0 {
			break
		}
		batch = append(append(batch, line.JSON...), '\n')
		written++
	}
	if written == 0 {
		return 0, l.rotate()
	}
	if err := l.write(batch, size); err != nil {
		return 0, err
	}
	l.advance(lines[:written])
	return written, nil
}

// write removes the whole batch if the disk has no room.
func (l *Log) write(batch []byte, end int64) error {
	_, err := l.file.Write(batch)
	if err == nil {
		return nil
	}
	cut := l.file.Truncate(end)
	l.torn = cut != nil
	return fmt.Errorf("audit file: %w", errors.Join(err, cut))
}

func (l *Log) advance(written []Line) {
	first, last := uint64(0), uint64(0)
	for _, line := range written {
		if l.last > 0 && line.Number > l.last+1 {
			if first == 0 {
				first = l.last + 1
			}
			last = line.Number - 1
		}
		l.last = line.Number
	}
	if first > 0 && !l.cfg.Some {
		l.cfg.Logger.Warn("events are missing in the audit file; other nodes may have them", "path", l.cfg.Path, "first", first, "last", last)
	}
}

// follow reopens the file if it was moved, or if a write may have torn it.
func (l *Log) follow() error {
	ours, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("audit file: %w", err)
	}
	there, err := os.Stat(l.cfg.Path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("audit file: %w", err)
	case err == nil && os.SameFile(ours, there) && !l.torn:
		return nil
	}
	if err := l.file.Sync(); err != nil {
		l.cfg.Logger.Warn("the end of the former audit file may be lost", "path", l.cfg.Path, "error", err)
	}
	if err := l.reopen(); err != nil {
		return err
	}
	l.cfg.Logger.Info("opened the audit file again", "path", l.cfg.Path)
	return nil
}

func (l *Log) reopen() error {
	last, err := settle(l.cfg.Path, l.cfg.Logger)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.cfg.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return fmt.Errorf("audit file: %w", err)
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.last, l.torn = file, max(l.last, last), false
	return nil
}

// rotate may be interrupted at any point: it renames files only up to the first free name. A rename lost in a
// power cut is harmless, since Open finds the events under the earlier name.
func (l *Log) rotate() error {
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("audit file: %w", err)
	}
	free, err := l.freeName()
	if err != nil {
		return fmt.Errorf("audit file: %w", err)
	}
	for i := free; i >= 1; i-- {
		if err := os.Rename(l.name(i-1), l.name(i)); err != nil {
			return fmt.Errorf("rotate the audit file: %w", err)
		}
	}
	return l.reopen()
}

// freeName returns the first free name, or else the oldest file, which rotate overwrites.
func (l *Log) freeName() (int, error) {
	for i := 1; i < l.cfg.Keep; i++ {
		_, err := os.Lstat(l.name(i))
		if errors.Is(err, fs.ErrNotExist) {
			return i, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return l.cfg.Keep, nil
}

func (l *Log) name(rotated int) string {
	if rotated == 0 {
		return l.cfg.Path
	}
	return l.cfg.Path + "." + strconv.Itoa(rotated)
}
