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

// journal remembers, beyond a kill -9 of this process, its session and which of its calls are under way.
// It is a file mapped into memory, so a note costs a store. It does not outlive the host: nothing that a
// mount had open does.
//
// A call is struck off just before its result goes to the kernel. What a successor finds is therefore
// settled safely: no program was told the result. For the moment between the two, the answer that tells
// of a creation is left in the journal too, and a [FinishAnswers] hands it to the kernel should this process be
// killed just then. The kernel takes an answer once, so it does no harm if it had it already.
type journal struct {
	file *os.File // locked by the process that uses it (see takeJournals)
	data []byte

	mu       sync.Mutex       // over answers
	answered map[uint32]int   // thread -> slot of the last answer to it
	threads  [inFlight]uint32 // of the answers in the slots
}

// inFlight bounds a client's operations that are under way or not settled yet. It is well below
// namespace.MaxReplies.
const inFlight = 1024

// Layout: a header, then a slot for each call in flight: session, number (0: struck off), length of the
// answer (0: none) and in its upper half the thread that it is for, the answer; at the end the cluster, which was not known to the first programs that wrote one.
const (
	journalMagic   = 0x316c6e726a736b6c // "lksjrnl1"
	journalHeader  = 64
	journalSlot    = 256
	journalAnswer  = 24                                   // offset in a slot
	journalCluster = journalHeader + inFlight*journalSlot // length of the id of the cluster (0: none is known), then that
	journalIDLen   = 56
	journalHanded  = journalCluster + 8 + journalIDLen // 1: the process has handed the session over; 0: it goes on, or was killed
	journalSize    = journalHanded + 8
	journalBootID  = 24
	journalBootLen = 36
)

// journalState is what earlier processes left.
type journalState struct {
	session ids.Session  // 0: nothing
	cluster string       // whose session it is; empty: that is not known
	last    ids.Sequence // number taken last in that session
	pending []pendingCall
	killed  bool // the process before did not hand its session over
}

// callNumber is what a call is called.
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

// grow maps a file that may be of a program that wrote less.
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

// size gives a file its size and space, and maps it. Without the space, a note would end the process once the disk is full.
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
				left.last = max(left.last, call.seq) // the process may have been killed before it noted that the number was taken
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

// begin notes a call before it is sent.
func (j *journal) begin(slot int, session ids.Session, seq ids.Sequence) {
	j.promised(slot).Store(0)
	inSession, number := j.slot(slot)
	inSession.Store(uint64(session))
	number.Store(uint64(seq))
	j.word(16).Store(uint64(seq))
}

// end strikes a call off: its result is known, or it has been settled.
func (j *journal) end(slot int) {
	_, number := j.slot(slot)
	number.Store(0)
}

// promise leaves the answer to a thread that the kernel is about to get. One that is too long is left out.
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
		j.answered = make(map[uint32]int) // what is forgotten so is at most given once too often
	}
	j.answered[thread], j.threads[slot] = slot, thread
}

// keepPromises goes on with the answers that an earlier program of this process has left: the kernel has had them, but the system call
// of a creation may not be over. It answers in which slots they are.
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

// goesOn takes the answer to a thread back, which has had it.
func (j *journal) goesOn(thread uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	slot, found := j.answered[thread]
	if !found {
		return
	}
	delete(j.answered, thread)
	if j.threads[slot] == thread { // else the slot has been used again
		j.promised(slot).Store(0)
	}
}

// promises answers what was left to tell, and in which slots: their calls are to be struck off then.
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

// adopt notes the session that is used from now on, in which last is the number taken last.
func (j *journal) adopt(session ids.Session, last ids.Sequence) {
	j.word(8).Store(uint64(session))
	j.word(16).Store(uint64(last))
}

// bind notes to which cluster the session does.
func (j *journal) bind(cluster string) {
	length := j.word(journalCluster)
	length.Store(0) // this process may be killed in between
	if len(cluster) <= journalIDLen {
		copy(j.data[journalCluster+8:], cluster)
		length.Store(uint64(len(cluster)))
	}
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
