package crashstate

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Estate belongs to the mount's present process. A nil Estate keeps nothing.
type Estate struct {
	file *os.File
	data []byte

	seen seen // its writer has its own mutex

	mu    sync.Mutex
	files slots[uint64]
	locks slots[Owner]
}

// seen is the text of the observations (see lookguard.Log).
type seen struct {
	at, length, first int
}

// Owner is an owner of locks of a file.
type Owner struct {
	Ino    ids.Inode
	Kind   storepb.LockKind
	Number ids.Owner
}

// New returns the crash state for a mount without open files. mount describes it; crashes are the times of
// earlier crashes.
func New(mount []byte, crashes []int64) (*Estate, error) {
	if len(mount) > atFiles-atMount {
		return nil, errors.New("too much is to be left of the mount")
	}
	fd, err := unix.MemfdCreate("lockfs-crashstate", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	e := &Estate{file: os.NewFile(uintptr(fd), "crashstate"), files: newSlots[uint64](), locks: newSlots[Owner]()}
	if err := e.file.Truncate(size); err != nil {
		return nil, errors.Join(err, e.file.Close())
	}
	if e.data, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(os.NewSyscallError("mmap", err), e.file.Close())
	}
	copy(e.data[atMount:], mount)
	e.word(atLength).Store(uint64(len(mount)))
	for i, at := range crashes[max(0, len(crashes)-mostCrashes):] {
		e.word(atCrashes + 8*i).Store(uint64(at))
	}
	e.word(atMagic).Store(magic)
	return e, nil
}

// File returns the memory, to be shared with the process that calls [Load].
func (e *Estate) File() *os.File { return e.file }

func (e *Estate) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&e.data[at])) }

// Opened records an open file and its name, as a text. It returns the word for the session of its locks; nil:
// none.
func (e *Estate) Opened(handle uint64, ino ids.Inode, name []byte) (session *atomic.Uint64) {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n, found := e.files.take(handle)
	if !found || !e.writeName(n, name) {
		e.word(atIncomplete).Store(1)
		return nil
	}
	at := atFiles + n*slot
	e.word(at + 8).Store(uint64(ino))
	e.word(at + 16).Store(0)
	e.word(at).Store(handle)
	return e.word(at + 16)
}

// Named records a change of an open file's name.
func (e *Estate) Named(handle uint64, name []byte) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n, found := e.files.of[handle]
	if !found {
		return
	}
	if !e.writeName(n, name) {
		e.word(atIncomplete).Store(1)
	}
}

// writeName needs the mutex. The length comes last, so a name is there completely or not at all.
func (e *Estate) writeName(n int, name []byte) bool {
	if len(name) > mostName {
		return false
	}
	e.word(atFiles + n*slot + 24).Store(0)
	if len(name) > 0 {
		if _, err := e.file.WriteAt(name, int64(atNames+n*mostName)); err != nil {
			return false
		}
	}
	e.word(atFiles + n*slot + 24).Store(uint64(len(name)))
	return true
}

// Closed removes an open file.
func (e *Estate) Closed(handle uint64) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, found := e.files.give(handle); found {
		e.word(atFiles + n*slot).Store(0)
	}
}

// Locks records that an owner may have locks through a handle, or their future (Released, Lost).
func (e *Estate) Locks(of Owner, handle uint64) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n, found := e.locks.take(of)
	if !found {
		e.word(atIncomplete).Store(1)
		return
	}
	at := atLocks + n*slot
	e.word(at + lockOwner).Store(uint64(of.Number))
	e.word(at + lockInode).Store(uint64(of.Ino))
	e.word(at + lockHandle).Store(handle)
	e.word(at + lockState).Store(lockIsThere | uint64(of.Kind)<<32)
}

// LocksNothing removes an owner after the cluster has recorded that it has no locks.
func (e *Estate) LocksNothing(of Owner) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, found := e.locks.give(of); found {
		e.word(atLocks + n*slot).Store(0)
	}
}

// slots assigns places in a table to keys.
type slots[K comparable] struct {
	of   map[K]int
	free []int
	next int
}

func newSlots[K comparable]() slots[K] { return slots[K]{of: make(map[K]int)} }

// take returns the place of a key, old or new; false: the table is full.
func (s *slots[K]) take(key K) (n int, found bool) {
	if n, found := s.of[key]; found {
		return n, true
	}
	switch last := len(s.free) - 1; {
	case last >= 0:
		n, s.free = s.free[last], s.free[:last]
	case s.next < room:
		n = s.next
		s.next++
	default:
		return 0, false
	}
	s.of[key] = n
	return n, true
}

func (s *slots[K]) give(key K) (n int, found bool) {
	if n, found = s.of[key]; found {
		delete(s.of, key)
		s.free = append(s.free, n)
	}
	return n, found
}

// Layout: words of 8 bytes in the byte order of this host; then the description of the mount, in bytes; then
// two tables of slots. The key at the begin of a slot is written last and cleared first; 0: free.
const (
	magic = 0x3274736573666b6c // "lkfsest2"

	atMagic      = 0
	atLength     = 8  // of the mount's description
	atIncomplete = 16 // not 0: a table or name was full
	atCrashes    = 24 // crash times, on CLOCK_BOOTTIME; 0: none
	mostCrashes  = 10

	atSeen    = 128                     // begin of the observations; upper half: their length
	atText    = atNames + room*mostName // the first text
	atOther   = atText + mostText       // the other, for its replacement
	mostText  = 1 << 30                 // sparse
	fullText  = 4                       // a text is full at so many times its first length, at least shortText
	shortText = 1 << 20

	atMount = 4096
	atFiles = 64 << 10 // handle, inode, session of its locks, length of its name
	atLocks = atFiles + room*slot
	size    = atLocks + room*slot // untouched pages take no memory

	atNames  = size // a place for each file
	mostName = 1024

	slot = 32
	room = 1 << 17 // more than the locks of a session
)

// Offsets in a slot of a lock.
const (
	lockState  = 0 // its key: lockIsThere, and the kind in the upper half
	lockOwner  = 8
	lockInode  = 16
	lockHandle = 24

	lockIsThere = 1
)

// Instead of the handle of the locks.
const (
	Released = 0          // the owner is to have none, and the cluster may not know yet
	Lost     = ^uint64(0) // likewise, and programs may rely on them
)
