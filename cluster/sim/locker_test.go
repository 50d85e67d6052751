package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
	"lockfs/test/history"
)

// locker does at random what programs do with locks of open file descriptions (F_OFD_SETLK), each of which has one lock at a time. An
// open file description is an owner of its own, which fusefs has from the kernel.
type locker struct {
	w      *world
	mount  *mount
	random *rand.Rand
	client int // its number in the history
	seq    int
	owner  uint64 // the last one
	calls  int    // left

	gen  int  // of the mount
	open bool // something is locked through it: what was open goes with the mount
}

// lockFile is what lockers lock.
type lockFile struct {
	ino uint64

	mu    sync.Mutex
	calls []*history.LockCall
}

// lockable is how many bytes of it they lock, and longestHold how long they wait, and hold what they have.
const (
	lockable    = 4
	longestHold = 150 * time.Millisecond
)

func (l *locker) play() {
	for l.calls > 0 {
		if l.random.IntN(4) == 0 {
			l.test()
		} else {
			l.hold()
		}
		if l.random.IntN(3) == 0 {
			l.pause(longestPause)
		}
	}
}

func (l *locker) pause(most time.Duration) { time.Sleep(time.Duration(l.random.Int64N(int64(most)))) }

// hold takes a lock, if it can be had, and releases it.
func (l *locker) hold() {
	lock := l.lock()
	lock.Wait = l.random.IntN(2) == 0
	if !l.ask(history.OFD, lock) {
		return
	}
	l.open = true
	l.pause(longestHold)
	lock.Type, lock.Wait = storepb.LockType_UNLOCK, false
	l.ask(history.OFD, lock)
}

// test looks whether a lock could be had.
func (l *locker) test() { l.ask(history.TestOFD, l.lock()) }

// lock is what another owner may want.
func (l *locker) lock() *storepb.TakeLock {
	l.owner++
	first := l.random.IntN(lockable)
	last := first + l.random.IntN(lockable-first)
	return &storepb.TakeLock{
		Ino: l.w.locked.ino, Kind: storepb.LockKind_RECORD, Owner: uint64(l.client)<<32 + l.owner, Pid: uint32(l.client),
		Type:  []storepb.LockType{storepb.LockType_SHARED, storepb.LockType_EXCLUSIVE}[l.random.IntN(2)],
		Start: uint64(first), End: uint64(last),
	}
}

var lockModes = map[storepb.LockType]history.Mode{
	storepb.LockType_UNLOCK: history.NoLock, storepb.LockType_SHARED: history.ReadLock, storepb.LockType_EXCLUSIVE: history.WriteLock,
}

// ask does a call, writes it down, and answers whether it succeeded.
func (l *locker) ask(kind history.Kind, lock *storepb.TakeLock) (done bool) {
	l.calls--
	l.seq++
	m := l.mount
	client, gen := m.await()
	isGone := gen != l.gen && l.open
	l.gen, l.open = gen, false
	call := &history.LockCall{
		Record: history.Record{Client: l.client, Seq: l.seq, Host: m.name, Dir: "locks", Start: l.w.now()},
		File:   "locked", Pid: l.client, Kind: kind, Opened: int(l.owner), Mode: lockModes[lock.GetType()],
		Range: history.Range{First: int(lock.GetStart()), Last: int(lock.GetEnd())}, Wait: lock.GetWait(),
	}
	var result *storepb.Result
	var err error
	switch {
	case isGone:
	case kind == history.TestOFD:
		result, err = client.Query(context.Background(), &storepb.Query{Query: &storepb.Query_TestLock{
			TestLock: &storepb.TestLock{Session: uint64(client.Session()), Lock: lock},
		}})
		for _, seen := range result.GetAdvisoryLocks() {
			call.Got = history.LockSeen{
				Mode: lockModes[seen.GetType()], Range: history.Range{First: int(seen.GetStart()), Last: int(seen.GetEnd())}, Pid: -1,
			}
		}
	default:
		ctx, end := context.WithTimeout(context.Background(), time.Duration(l.random.Int64N(int64(longestHold))))
		for {
			result, err = client.Lock(ctx, &storepb.Caller{}, lock)
			if result.GetCode() != storepb.Code_NOT_FOUND { // then it was dropped before
				break
			}
		}
		end()
	}
	if err != nil && result.GetCode() == storepb.Code_CANCELLED && lock.GetType() == storepb.LockType_UNLOCK {
		l.w.playing.Go(func() { l.dropLater(client, gen, lock) })
	}
	call.Errno = lockErrno(result, err)
	call.Lapsed = call.Errno == syscall.EINTR && uint64(client.Session()) != lock.GetSession()
	for thaw := m.h.thawed(); thaw != nil && m.generation() == gen; thaw = m.h.thawed() {
		<-thaw
	}
	if isGone || m.generation() != gen {
		call.Errno = syscall.ENOTCONN // nobody was told
	}
	call.End = l.w.now()
	if call.End == call.Start {
		l.w.noteDone("calls that failed at once")
		l.pause(5 * longestPause)
	}
	l.w.locked.add(call)
	l.w.noteDone("calls on locks")
	return call.Errno == 0
}

func (f *lockFile) add(call *history.LockCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

// lockErrno is what a program is told, as fusefs has it.
func lockErrno(result *storepb.Result, err error) syscall.Errno {
	switch {
	case errors.Is(err, session.ErrInterrupted):
		return syscall.EINTR
	case errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	case err != nil:
		return syscall.EIO
	}
	switch result.GetCode() {
	case storepb.Code_OK:
		return 0
	case storepb.Code_WOULD_BLOCK:
		return syscall.EAGAIN
	}
	return syscall.EIO
}

// dropLater tells of a release that was not sent, until the cluster knows or the mount has died.
func (l *locker) dropLater(client *session.Client, gen int, lock *storepb.TakeLock) {
	op := &storepb.Op{Op: &storepb.Op_DropLocks{
		DropLocks: &storepb.DropLocks{Ino: lock.GetIno(), Kind: lock.GetKind(), Owners: []uint64{lock.GetOwner()}},
	}}
	for !l.w.isOver() && l.mount.generation() == gen {
		if _, err := client.Mutate(context.Background(), &storepb.Caller{}, op); err == nil {
			return
		}
		time.Sleep(longestPause)
	}
}

// lockAll requires that each mount can lock everything, one after the other: nothing is left that nobody releases.
func (w *world) lockAll() {
	if w.lockers == 0 {
		return
	}
	var locking sync.WaitGroup
	locking.Go(func() {
		for i, m := range w.mounts {
			for !w.isOver() {
				client, _ := m.await()
				lock := &storepb.TakeLock{
					Ino: w.locked.ino, Kind: storepb.LockKind_RECORD, Owner: uint64(i + 1), Type: storepb.LockType_EXCLUSIVE, End: lockable,
				}
				result, err := client.Lock(context.Background(), &storepb.Caller{}, lock)
				if lockErrno(result, err) != 0 {
					time.Sleep(longestPause)
					continue
				}
				lock.Type = storepb.LockType_UNLOCK
				_, _ = client.Lock(context.Background(), &storepb.Caller{}, lock) // the next one tells
				break
			}
		}
	})
	w.awaitOrEnd(&locking, "a lock stays that nobody has any more")
}

func (w *world) checkLocks() error {
	h := &history.LockHistory{Calls: w.locked.calls, OpTimeout: w.opTimeout, Prompt: patience} // a wait that was interrupted has no lock (Lapsed)
	return h.Check(checkTime)
}

// makeLocked makes what lockers lock.
func (w *world) makeLocked() {
	if w.lockers > 0 {
		w.locked.ino = w.make("locked", syscall.S_IFREG|fileMode)
	}
}

func (w *world) newLockers() (lockers []*locker) {
	for i, m := range w.mounts {
		for n := range w.lockers {
			lockers = append(lockers, &locker{
				w: w, mount: m, random: rand.New(rand.NewPCG(w.seed, uint64(5000+100*i+n))), client: len(lockers) + 1, calls: w.calls,
			})
		}
	}
	return lockers
}
