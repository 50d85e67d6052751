package lockfile

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockfs/formats/lockfact"
)

// leftoverAge is when a temporary file is a leftover: it is there for a moment.
const leftoverAge = time.Hour

// sweep removes the temporary files that killed processes left in a directory. It waits for nobody: if another program
// has LockDir, the next one sweeps.
func sweep(dir string) {
	var leftovers []string
	for _, name := range namesIn(dir) {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, ".lockfs-") && lockfact.IsTemporary(name) && isLeftover(path) {
			leftovers = append(leftovers, path)
		}
	}
	if len(leftovers) == 0 {
		return
	}
	once, cancel := context.WithCancel(context.Background())
	cancel()
	unlock, err := LockDir(once, dir) // as an old lock has a temporary name while it is being removed
	if err != nil {
		return
	}
	defer unlock()
	for _, path := range leftovers {
		_ = os.Remove(path)
	}
}

func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	return names
}

func isLeftover(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.FileMode(0) && time.Since(info.ModTime()) > leftoverAge
}
