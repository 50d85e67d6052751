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

// prefix begins the name of every space.
const prefix = "lockfs-bench-"

// space is a fresh directory in one that is measured.
type space struct {
	dir  string // as it was given
	path string
}

// openSpaces makes one in each directory, and in none if it fails.
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

// closeSpaces removes all that a run has made.
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

// seenIn is the path of a space in another directory, where it is if both show the same files.
func (s space) seenIn(other space) (path string, seen bool) {
	path = filepath.Join(other.dir, filepath.Base(s.path))
	_, err := os.Lstat(path)
	return path, err == nil
}

// target is where a measurement is made: in one directory, or in several at once.
type target struct {
	dirs  []string // as they were given
	paths []string // where to work, for each
}

// inTurn is each directory, or all together.
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

// inPairs is any two consecutive directories that show the same files; each other directory makes a pair with
// itself.
func inPairs(spaces []space, _ bool) (targets []target) {
	paired := false // with the one before
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
