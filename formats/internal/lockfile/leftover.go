package lockfile

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// leftoverAge is when a temporary file is a leftover: it is there for a moment.
const leftoverAge = time.Hour

// mostNames bounds what it costs to look for leftovers, where thousands of locks are in one directory.
const mostNames = 1000

// Sweep removes the temporary files that killed processes left beside a lock that was just made, an hour ago or earlier. ours
// tells them by their names. It waits for nobody: if another program has LockDir, the next one sweeps.
//
// How old they are it tells by the lock too: where this host's clock is an hour ahead of the file system's, what another host is
// about to link or has moved for a moment is no leftover.
//
// It has LockDir from before it lists the directory, for two reasons. While a lock is being removed it has a temporary
// name. And on a mount of lockfs who lists a directory is not held to what he saw of its locks before, so nothing else in
// this process may be between a look and a removal.
func Sweep(made string, now time.Time, ours func(name string) bool) {
	lock, err := os.Lstat(made)
	if err != nil {
		return
	}
	if lock.ModTime().Before(now) {
		now = lock.ModTime()
	}
	dir := filepath.Dir(made)
	once, cancel := context.WithCancel(context.Background())
	cancel()
	unlock, err := LockDir(once, dir)
	if err != nil {
		return
	}
	defer unlock()
	for _, name := range namesIn(dir) {
		if path := filepath.Join(dir, name); ours(name) && isLeftover(path, now) {
			_ = os.Remove(path)
		}
	}
}

func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(mostNames)
	return names
}

func isLeftover(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > leftoverAge
}
