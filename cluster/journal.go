package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// journal remembers, beyond a kill -9 of this process, its session and which of its calls are under way.
// It is a file mapped into memory, so a note costs a store. It does not outlive the host: nothing that a
// mount had open does.
//
// A call is struck off just before its result goes to the kernel. What a successor finds is therefore
// settled safely: no program was told the result. The reverse gap remains: a process killed in the few
// microseconds between the two leaves a creation that its caller was not told of.
type journal struct {
	file *os.File // locked by the process that uses it
	data []byte
}

// Layout: a header, then a slot of two words (session, number) for each call in flight; the number 0 is
// an empty slot.
const (
	journalMagic   = 0x316c6e726a736b6c // "lksjrnl1"
	journalHeader  = 64
	journalSlot    = 16
	journalSize    = journalHeader + inFlight*journalSlot
	journalBootID  = 24
	journalBootLen = 36
)

// journalState is what an earlier process left.
type journalState struct {
	session uint64 // 0: nothing
	last    uint64 // number taken last in that session
	pending []pendingCall
}

type pendingCall struct{ session, seq uint64 }

// openJournal answers what an earlier process on this boot left at path. An empty path is a journal in
// memory only.
func openJournal(path, bootID string) (*journal, *journalState, error) {
	if path == "" {
		data, err := unix.Mmap(-1, 0, journalSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		return &journal{data: data}, new(journalState), err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, fmt.Errorf("session file: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("session file: %w", err)
	}
	j := &journal{file: file}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("session file %s is in use by another process: %w", path, err), j.close())
	}
	if err := file.Truncate(journalSize); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("session file: %w", err), j.close())
	}
	j.data, err = unix.Mmap(int(file.Fd()), 0, journalSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("session file: %w", err), j.close())
	}
	left := j.read(bootID)
	if left.session == 0 {
		clear(j.data)
		copy(j.data[journalBootID:], bootID)
		j.word(0).Store(journalMagic)
	}
	return j, left, nil
}

func (j *journal) read(bootID string) *journalState {
	left := new(journalState)
	written := strings.TrimRight(string(j.data[journalBootID:journalBootID+journalBootLen]), "\x00")
	if j.word(0).Load() != journalMagic || written != bootID {
		return left
	}
	left.session, left.last = j.word(8).Load(), j.word(16).Load()
	for slot := range inFlight {
		session, seq := j.slot(slot)
		if seq.Load() != 0 {
			left.pending = append(left.pending, pendingCall{session.Load(), seq.Load()})
		}
	}
	return left
}

func (j *journal) word(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&j.data[offset]))
}

func (j *journal) slot(slot int) (session, seq *atomic.Uint64) {
	at := journalHeader + slot*journalSlot
	return j.word(at), j.word(at + 8)
}

// begin notes a call before it is sent.
func (j *journal) begin(slot int, session, seq uint64) {
	inSession, number := j.slot(slot)
	inSession.Store(session)
	number.Store(seq)
	j.word(16).Store(seq)
}

// end strikes a call off: its result is known, or it has been settled.
func (j *journal) end(slot int) {
	_, number := j.slot(slot)
	number.Store(0)
}

// adopt notes the session that is used from now on, in which last is the number taken last.
func (j *journal) adopt(session, last uint64) {
	j.word(8).Store(session)
	j.word(16).Store(last)
}

// discard removes the file: nobody is to take the session over.
func (j *journal) discard() error {
	if j.file == nil {
		return nil
	}
	return os.Remove(j.file.Name())
}

// close leaves the memory mapped: a call of a mount that could not be unmounted may still note its end.
// The mapping keeps the file open, so the lock does not go by itself.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN), j.file.Close())
}
