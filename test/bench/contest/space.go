package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// prefix is the begin of each space's name.
const prefix = "lockfs-bench-"

// space is a fresh directory in a measured one.
type space struct {
	dir  string // as given by the caller
	path string
}

// openSpaces creates a space in each directory, or none after an error.
func openSpaces(dirs []string, warn func(string)) (spaces []space, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeSpaces(spaces))
		}
	}()
	for _, dir := range dirs {
		if err := warnOfRemains(dir, spaces, warn); err != nil {
			return spaces, err
		}
		path, err := os.MkdirTemp(dir, prefix)
		if err != nil {
			return spaces, fmt.Errorf("nothing can be created in %s: %w", dir, err)
		}
		spaces = append(spaces, space{dir, path})
	}
	return spaces, nil
}

// closeSpaces removes all files of a run.
func closeSpaces(spaces []space) error {
	var failed error
	for _, s := range spaces {
		if err := os.RemoveAll(s.path); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s is left behind: %w", s.path, err))
		}
	}
	return failed
}

func warnOfRemains(dir string, own []space, warn func(string)) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &os.PathError{Op: "measure", Path: dir, Err: syscall.ENOTDIR}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		isOwn := slices.ContainsFunc(own, func(s space) bool { return filepath.Base(s.path) == entry.Name() })
		if strings.HasPrefix(entry.Name(), prefix) && !isOwn {
			warn(filepath.Join(dir, entry.Name()) + " is of a run that was killed, or is at work elsewhere; it is left alone")
		}
	}
	return nil
}

// seenIn returns the path of a space in another directory, if both show the same files.
func (s space) seenIn(other space) (path string, seen bool) {
	path = filepath.Join(other.dir, filepath.Base(s.path))
	_, err := os.Lstat(path)
	return path, err == nil
}

// target is the place of a measurement: one directory, or several at once.
type target struct {
	dirs  []string // as given by the caller
	paths []string // a working directory for each
}

// inTurn returns each directory, or all together.
func inTurn(spaces []space, together bool) (targets []target) {
	var all target
	for _, s := range spaces {
		targets = append(targets, target{[]string{s.dir}, []string{s.path}})
		all.dirs, all.paths = append(all.dirs, s.dir), append(all.paths, s.path)
	}
	if together {
		return []target{all}
	}
	return targets
}

// inPairs returns each two consecutive directories that show the same files. Each other directory is a pair
// with itself.
func inPairs(spaces []space, _ bool) (targets []target) {
	paired := false // with the previous one
	for i, s := range spaces {
		if i+1 < len(spaces) {
			if path, same := s.seenIn(spaces[i+1]); same {
				targets = append(targets, target{[]string{s.dir, spaces[i+1].dir}, []string{s.path, path}})
				paired = true
				continue
			}
		}
		if !paired {
			targets = append(targets, target{[]string{s.dir}, []string{s.path, s.path}})
		}
		paired = false
	}
	return targets
}
