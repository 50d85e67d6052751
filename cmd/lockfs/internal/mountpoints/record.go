package mountpoints

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockfs/cluster/atomicfile"
)

// recordFile has a line for each mount point: words by comma, a blank, and the directory. Scripts of packages
// read it too.
const recordFile = "/etc/lockfs/mount-points"

// Words of a line.
const (
	upWord        = "up"        // lockfs up mounts there
	protectedWord = "protected" // lockfs has protected the bare directory, and has to undo it
)

// entry is a line of the record.
type entry struct {
	dir           string
	up, protected bool
}

// readRecord returns no entries without a record.
func readRecord(file string) (entries []entry, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		words, dir, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if found {
			has := strings.Split(words, ",")
			entries = append(entries, entry{dir, slices.Contains(has, upWord), slices.Contains(has, protectedWord)})
		}
	}
	return entries, nil
}

// changeRecord changes the line of a directory, and removes an empty one. Concurrent calls are safe.
func changeRecord(file, dir string, change func(*entry)) error {
	if strings.Contains(dir, "\n") {
		return fmt.Errorf("the mount point %q has a line break in its name", dir)
	}
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	lock, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return os.NewSyscallError("flock", err)
	}
	entries, err := readRecord(file)
	if err != nil {
		return err
	}
	before := render(entries)
	at := slices.IndexFunc(entries, func(e entry) bool { return e.dir == dir })
	if at < 0 {
		at, entries = len(entries), append(entries, entry{dir: dir})
	}
	change(&entries[at])
	after := render(entries)
	if after == before {
		return nil
	}
	if after == "" {
		return errors.Join(os.Remove(file), atomicfile.SyncDir(folder))
	}
	return atomicfile.ReplaceForAll(file, []byte(after)) // commands of all users read it
}

func render(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		var words []string
		if e.up {
			words = append(words, upWord)
		}
		if e.protected {
			words = append(words, protectedWord)
		}
		if len(words) > 0 {
			fmt.Fprintf(&b, "%s %s\n", strings.Join(words, ","), e.dir)
		}
	}
	return b.String()
}
