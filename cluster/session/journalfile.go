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
	// journalPatience is how long a successor waits for the guard of the previous process.
	journalPatience = 2 * time.Second
	journalPause    = 5 * time.Millisecond
	mostJournals    = 64
)

var errManyJournals = errors.New("too many processes use it: end those of mounts that are not seen any more")

func journalPath(path string, number int) string {
	if number == 0 {
		return path
	}
	return path + "." + strconv.Itoa(number)
}

// Files returns the existing session files of a path.
func Files(path string) (there []string) {
	for number := range mostJournals {
		if _, err := os.Stat(journalPath(path, number)); err == nil {
			there = append(there, journalPath(path, number))
		}
	}
	return there
}

// takeJournals locks and maps all unused files of a path which have a session, or a new file if there is
// none. A process may use a file long after its mount is out of sight: after a lazy unmount, or in another
// mount namespace. The guard of a killed process unlocks its file soon; takeJournals waits for it.
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
				continue // another process was faster
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

// lockJournal opens and maps a file. It returns EWOULDBLOCK if another process uses the file.
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

// isStillThere returns EWOULDBLOCK if the file was removed or replaced before the lock.
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

func (j *journal) letGo() error { return errors.Join(unix.Munmap(j.data), j.close()) }

// openJournal returns the state of earlier processes of this boot at path (see takeJournals), and the other
// journals with pending calls. If path is empty, the journal is in memory only.
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
			each.promised(slot).Store(0) // of another mount
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
