package lockfile

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// leftoverAge is the age at which a temporary file is a leftover. In use, it exists only for a moment.
const leftoverAge = time.Hour

// mostNames limits the cost of a search in a directory with thousands of locks.
const mostNames = 1000

// Sweep removes temporary files of killed processes beside a lock just created, if they are older than an
// hour. ours recognizes their names. Sweep does not wait: if another program has LockDir, the next call
// sweeps.
//
// The age also counts against the new lock's time. This host's clock may be an hour ahead of the file
// system's clock. A temporary file of another host, about to be linked, must stay.
//
// Sweep has LockDir before it lists the directory, for two reasons. A lock under removal has a
// temporary name. And on a lockfs mount, a listing
// clears the process's looks there, so it must not come between a look and a removal in this process.
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
