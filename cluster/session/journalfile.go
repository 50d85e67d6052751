package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// journalPatience is how long a successor waits for the guard of the process before it.
	journalPatience = 2 * time.Second
	journalPause    = 5 * time.Millisecond
	// mostJournals bounds the processes that use files of one path at the same time.
	mostJournals = 64
)

var errManyJournals = errors.New("too many processes use it: end those of mounts that are not seen any more")

// journalPath is the name of one of the files of a path.
func journalPath(path string, number int) string {
	if number == 0 {
		return path
	}
	return path + "." + strconv.Itoa(number)
}

// Files are the session files of a path that are there.
func Files(path string) (there []string) {
	for number := range mostJournals {
		if _, err := os.Stat(journalPath(path, number)); err == nil {
			there = append(there, journalPath(path, number))
		}
	}
	return there
}

// takeJournals locks and maps all files of a path that hold a session and are used by nobody, or a new one if there is none.
// A process may use one of them for long, although its mount is not seen any more: it was unmounted lazily, or is shown in
// another mount namespace. The guard of one that was killed lets go soon, and is waited for.
func takeJournals(path, bootID string) (journals []*journal, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	taken := make(map[int]*journal)
	defer func() {
		if err != nil {
			for _, j := range taken {
				err = errors.Join(err, j.letGo())
			}
		}
	}()
	for end := time.Now().Add(journalPatience); ; time.Sleep(journalPause) {
		free, used := -1, false
		for number := range mostJournals {
			if taken[number] != nil {
				continue
			}
			j, err := lockJournal(journalPath(path, number), 0)
			switch {
			case errors.Is(err, syscall.EWOULDBLOCK):
				used = true
				continue
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return nil, err
			case err == nil && j.read(bootID).session != 0:
				taken[number] = j
				continue
			case err == nil:
				if err := j.letGo(); err != nil {
					return nil, err
				}
			}
			if free < 0 {
				free = number
			}
		}
		if used && time.Now().Before(end) {
			continue
		}
		if len(taken) == 0 && free < 0 {
			return nil, fmt.Errorf("%s: %w", path, errManyJournals)
		}
		if len(taken) == 0 {
			j, err := lockJournal(journalPath(path, free), os.O_CREATE)
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue // somebody else was faster
			}
			if err != nil {
				return nil, err
			}
			taken[free] = j
		}
		for number := range mostJournals {
			if j := taken[number]; j != nil {
				journals = append(journals, j)
			}
		}
		return journals, nil
	}
}

// lockJournal opens a file and maps it. The error is EWOULDBLOCK if another process uses it.
func lockJournal(path string, flags int) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: file}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(os.NewSyscallError("flock", err), file.Close())
	}
	err = j.isStillThere()
	if err == nil {
		err = j.size()
	}
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// isStillThere answers EWOULDBLOCK if the file was removed, or made anew, before it was locked.
func (j *journal) isStillThere() error {
	there, err := os.Stat(j.file.Name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	opened, errOpened := j.file.Stat()
	if errOpened == nil && (err != nil || !os.SameFile(there, opened)) {
		errOpened = os.NewSyscallError("flock", syscall.EWOULDBLOCK)
	}
	return errOpened
}

// letGo closes a journal that nobody has used.
func (j *journal) letGo() error { return errors.Join(unix.Munmap(j.data), j.close()) }

// openJournal answers what earlier processes on this boot left at path (see takeJournals), together with the other journals
// that calls are pending in. An empty path is a journal in memory only.
func openJournal(path, bootID string) (j *journal, left *journalState, others []*journal, err error) {
	if path == "" {
		data, err := unix.Mmap(-1, 0, journalSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		return &journal{data: data}, new(journalState), nil, err
	}
	journals, err := takeJournals(path, bootID)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("session file: %w", err)
	}
	j, others = journals[0], journals[1:]
	for _, each := range journals {
		for slot := range inFlight {
			each.promised(slot).Store(0) // they were for another mount
		}
		each.word(journalHanded).Store(0)
	}
	left = j.read(bootID)
	if left.session == 0 {
		clear(j.data)
		copy(j.data[journalBootID:], bootID)
		j.word(0).Store(journalMagic)
	}
	for _, other := range others {
		left.pending = append(left.pending, other.read(bootID).pending...)
	}
	return j, left, others, nil
}
