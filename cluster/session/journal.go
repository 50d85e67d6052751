package session

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
)

// journal stores the session and the calls in progress, and survives kill -9 of this process. It is a file
// mapped into memory, so an entry costs a store. It is valid only within a boot, like the open files of the
// mount.
//
// The process removes a call just before it sends the result to the kernel. So a successor can safely cancel
// all calls in the journal: no program got their results. To cover the moment in between, the journal also
// has the reply of a creation, and [FinishAnswers] sends it after a kill. The kernel accepts a reply once, so
// a second one is harmless.
type journal struct {
	file *os.File // locked by the process that uses it (see takeJournals)
	data []byte

	mu       sync.Mutex       // guards the maps
	answered map[uint32]int   // thread -> slot of its last reply
	threads  [inFlight]uint32 // of the replies in the slots
}

// inFlight limits a client's calls in progress, including abandoned ones. It is well below
// namespace.MaxReplies.
const inFlight = 1024

// Layout: a header, a slot for each call in progress, and the cluster id, which the first versions did not
// write. A slot has the session, the number (0: free), the length of the reply (0: none) with the thread in
// the upper half, and the reply.
const (
	journalMagic   = 0x316c6e726a736b6c // "lksjrnl1"
	journalHeader  = 64
	journalSlot    = 256
	journalAnswer  = 24                                   // offset in a slot
	journalCluster = journalHeader + inFlight*journalSlot // length of the cluster id (0: unknown), then the id
	journalIDLen   = 56
	journalHanded  = journalCluster + 8 + journalIDLen // 1: handed over; 0: in use, or killed
	journalSize    = journalHanded + 8
	journalBootID  = 24
	journalBootLen = 36
)

// journalState is the state which an earlier process left.
type journalState struct {
	session ids.Session  // 0: none
	cluster string       // of the session; empty: unknown
	last    ids.Sequence // last number of the session
	pending []pendingCall
	killed  bool // the previous process did not hand over
}

type callNumber struct {
	session ids.Session
	seq     ids.Sequence
}

type pendingCall struct {
	callNumber
	slot int // in its journal
}

func (j *journal) mapFile() (err error) {
	j.data, err = unix.Mmap(int(j.file.Fd()), 0, journalSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// grow maps a file, which an older version may have written with a smaller size.
func (j *journal) grow() error {
	written, err := j.file.Stat()
	if err == nil && written.Size() < journalSize {
		return j.size()
	}
	if err != nil {
		return err
	}
	return j.mapFile()
}

// size allocates and maps the file. Without the allocation, a store would kill the process when the disk is
// full.
func (j *journal) size() error {
	if err := j.file.Truncate(journalSize); err != nil {
		return err
	}
	err := unix.Fallocate(int(j.file.Fd()), 0, 0, journalSize)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return &fs.PathError{Op: "fallocate", Path: j.file.Name(), Err: err}
	}
	return j.mapFile()
}

func (j *journal) read(bootID string) *journalState {
	left := new(journalState)
	written := strings.TrimRight(string(j.data[journalBootID:journalBootID+journalBootLen]), "\x00")
	if j.word(0).Load() != journalMagic || written != bootID {
		return left
	}
	left.session, left.last = ids.Session(j.word(8).Load()), ids.Sequence(j.word(16).Load())
	if length := j.word(journalCluster).Load(); length <= journalIDLen {
		left.cluster = string(j.data[journalCluster+8 : journalCluster+8+int(length)])
	}
	for slot := range inFlight {
		session, seq := j.slot(slot)
		if seq.Load() != 0 {
			call := pendingCall{callNumber{ids.Session(session.Load()), ids.Sequence(seq.Load())}, slot}
			left.pending = append(left.pending, call)
			if call.session == left.session {
				left.last = max(left.last, call.seq) // a kill may come before the store of the number
			}
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

func (j *journal) promised(slot int) *atomic.Uint64 {
	return j.word(journalHeader + slot*journalSlot + 16)
}

// begin records a call before it is sent.
func (j *journal) begin(slot int, session ids.Session, seq ids.Sequence) {
	j.promised(slot).Store(0)
	inSession, number := j.slot(slot)
	inSession.Store(uint64(session))
	number.Store(uint64(seq))
	j.word(16).Store(uint64(seq))
}

// end removes a call with a known result, or a cancelled one.
func (j *journal) end(slot int) {
	_, number := j.slot(slot)
	number.Store(0)
}

// promise stores the reply for a thread before the kernel gets it. It skips long replies.
func (j *journal) promise(slot int, thread uint32, answer []byte) {
	if len(answer) > journalSlot-journalAnswer {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	copy(j.data[journalHeader+slot*journalSlot+journalAnswer:], answer)
	j.promised(slot).Store(uint64(thread)<<32 | uint64(len(answer)))
	j.remember(slot, thread)
}

func (j *journal) remember(slot int, thread uint32) {
	if j.answered == nil || len(j.answered) >= inFlight {
		j.answered = make(map[uint32]int) // a forgotten reply is at most sent twice
	}
	j.answered[thread], j.threads[slot] = slot, thread
}

// keepPromises keeps the replies of a previous program of this process, and returns their slots. The kernel
// has the replies, and the system call of the creation may still be in progress.
func (j *journal) keepPromises() map[int]bool {
	kept := make(map[int]bool)
	for slot := range inFlight {
		if promised := j.promised(slot).Load(); promised != 0 {
			j.remember(slot, uint32(promised>>32))
			kept[slot] = true
		}
	}
	return kept
}

// goesOn removes the reply of a thread which has received it.
func (j *journal) goesOn(thread uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	slot, found := j.answered[thread]
	if !found {
		return
	}
	delete(j.answered, thread)
	if j.threads[slot] == thread { // else another call uses the slot
		j.promised(slot).Store(0)
	}
}

// promises returns the stored replies and their slots. The caller removes the calls afterwards.
func (j *journal) promises() (answers [][]byte, slots []int) {
	for slot := range inFlight {
		length := uint64(uint32(j.promised(slot).Load()))
		if length == 0 || length > journalSlot-journalAnswer {
			continue
		}
		at := journalHeader + slot*journalSlot + journalAnswer
		answers = append(answers, j.data[at:at+int(length)])
		slots = append(slots, slot)
	}
	return answers, slots
}

// adopt records a new session, with last as its last number.
func (j *journal) adopt(session ids.Session, last ids.Sequence) {
	j.word(8).Store(uint64(session))
	j.word(16).Store(uint64(last))
}

func (j *journal) bind(cluster string) {
	length := j.word(journalCluster)
	length.Store(0) // a kill may come before the end
	if len(cluster) <= journalIDLen {
		copy(j.data[journalCluster+8:], cluster)
		length.Store(uint64(len(cluster)))
	}
}

// discard removes the file, so no later process takes the session over.
func (j *journal) discard() error {
	if j.file == nil {
		return nil
	}
	return os.Remove(j.file.Name())
}

// close keeps the memory mapped: calls of a mount which could not be unmounted may still end. The mapping
// keeps the file open, so close also unlocks it.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN), j.file.Close())
}
