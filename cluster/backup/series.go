package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockfs/cluster/atomicfile"
)

// Series is the automatic backups of a node, in a directory shared with other nodes. Only complete files have
// a name of the series and count.
type Series struct {
	Dir  string
	Node string // name
	Keep int    // number of newest backups to keep
}

// Made is a backup added to a series.
type Made struct {
	Path    string
	Header  *Header
	Removed []string // paths of older backups
}

const (
	seriesSuffix = ".backup"
	seriesTime   = "20060102T150405Z"
)

// Name returns the name for a backup of a node at a time, to the second.
func Name(node string, at time.Time) string {
	return fmt.Sprintf("lockfs-%s-%s%s", node, at.UTC().Format(seriesTime), seriesSuffix)
}

// Add makes a backup with the output of write, and creates the directory if necessary. It then removes the
// oldest backups. Backups with a future time come first, as they were made with a wrong clock; the new one
// always stays.
func (s *Series) Add(at time.Time, write func(io.Writer) error) (*Made, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.removeUnfinished(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.Dir, Name(s.Node, at))
	header, err := Create(path, write)
	if err != nil {
		return nil, err
	}
	made := &Made{Path: path, Header: header}
	names, err := s.names()
	if future := slices.Index(names, Name(s.Node, at)) + 1; future > 0 {
		names = slices.Concat(names[future:], names[:future])
	}
	for ; err == nil && len(names) > s.Keep; names = names[1:] {
		old := filepath.Join(s.Dir, names[0])
		if err = os.Remove(old); err == nil {
			made.Removed = append(made.Removed, old)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("remove old backups: %w", err)
	}
	return made, nil
}

// Last returns the time of the newest backup; zero: none. It ignores backups after now, made with a wrong
// clock.
func (s *Series) Last(now time.Time) (last time.Time, err error) {
	names, err := s.names()
	for _, name := range names {
		if at, _ := s.timeOf(name); !at.After(now) {
			last = at
		}
	}
	return last, err
}

func (s *Series) names() ([]string, error) {
	entries, err := os.ReadDir(s.Dir) // sorted
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if _, is := s.timeOf(entry.Name()); is {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// timeOf returns the time in a name, and whether the name belongs to the series.
func (s *Series) timeOf(name string) (time.Time, bool) {
	text, is := strings.CutPrefix(name, "lockfs-"+s.Node+"-")
	text, ends := strings.CutSuffix(text, seriesSuffix)
	at, err := time.Parse(seriesTime, text)
	return at, is && ends && err == nil
}

// removeUnfinished removes files left by a process which ended during a write.
func (s *Series) removeUnfinished() error {
	entries, err := os.ReadDir(s.Dir)
	for _, entry := range entries {
		name, unfinished := strings.CutSuffix(entry.Name(), atomicfile.Unfinished)
		if _, is := s.timeOf(name); is && unfinished {
			err = errors.Join(err, os.Remove(filepath.Join(s.Dir, entry.Name())))
		}
	}
	return err
}
