package history

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// waiting is the longest wait of a client before it interrupts itself.
	waiting = 120 * time.Millisecond
	// descriptors is the number of a client's descriptors for each file.
	descriptors = 2
)

// locker makes random calls like a program with advisory locks.
type locker struct {
	*Client
	random *rand.Rand
	files  []*lockFile
	open   []*openLock
}

// oneDies: one in this number of clients is killed while it has a lock.
const oneDies = 3

// PlayLocks makes about this number of random calls, some after a pause. The client may be killed before (see
// [Killed]).
func (c *Client) PlayLocks(random *rand.Rand, names []string, calls int, longestPause time.Duration) error {
	p := &locker{Client: c, random: random}
	for _, name := range names {
		p.files = append(p.files, &lockFile{name: name})
	}
	err := p.openAll()
	end := calls
	if random.IntN(oneDies) == 0 {
		end = random.IntN(calls)
	}
	for n := range calls {
		if err == nil && n == end {
			err = p.die()
		}
		if err != nil {
			break
		}
		err = p.move()
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(longestPause))))
		}
	}
	err = errors.Join(err, p.closeAll())
	p.Leave()
	return err
}

func (p *locker) move() error {
	l := p.open[p.random.IntN(len(p.open))]
	switch p.random.IntN(20) {
	case 0, 1, 2, 3:
		return p.lock(Flock, l, everything)
	case 4, 5, 6, 7, 8:
		return p.lock(Posix, l, p.span())
	case 9, 10, 11, 12, 13:
		return p.lock(OFD, l, p.span())
	case 14, 15:
		return p.test(TestPosix, l)
	case 16:
		return p.test(TestOFD, l)
	case 17:
		call, err := p.use(Read, l)
		return p.after(l, call, err)
	case 18:
		return p.write(l)
	}
	return p.reopen(l)
}

// write writes a pid to a file that the client has locked at some time: from then on its content makes it no
// lock.
func (p *locker) write(l *openLock) error {
	if !l.had {
		return nil
	}
	call, err := p.writePid(l, p.random.IntN(2) == 0)
	return p.after(l, call, err)
}

// die tries to lock a file, writes a pid to it, and kills the process.
func (p *locker) die() error {
	l := p.open[p.random.IntN(len(p.open))]
	call, err := p.tryLock([]Kind{Flock, Posix, OFD}[p.random.IntN(3)], l, WriteLock, everything)
	if err == nil && call.Errno == 0 {
		_, err = p.writePid(l, p.random.IntN(2) == 0)
	}
	if err != nil {
		return err
	}
	return p.Client.die(p.open)
}

func (p *locker) span() Range {
	first := p.random.IntN(beyond)
	return Range{first, first + p.random.IntN(places-first)}
}

func (p *locker) lock(kind Kind, l *openLock, in Range) error {
	mode := lockModes[p.random.IntN(len(lockModes))]
	var call *LockCall
	var err error
	if mode != NoLock && p.random.IntN(3) == 0 {
		call, err = p.waitLock(kind, l, mode, in, time.Duration(p.random.Int64N(int64(waiting))))
	} else {
		call, err = p.tryLock(kind, l, mode, in)
	}
	if err := p.after(l, call, err); err != nil || mode == NoLock || call.Errno != 0 {
		return err
	}
	l.had = true
	if mode == WriteLock && p.random.IntN(2) == 0 {
		return p.write(l)
	}
	return nil
}

func (p *locker) test(kind Kind, l *openLock) error {
	call, err := p.tryLock(kind, l, ReadLock+Mode(p.random.IntN(2)), p.span())
	return p.after(l, call, err)
}

// lockModes has each mode in proportion to its frequency.
var lockModes = []Mode{NoLock, NoLock, NoLock, ReadLock, ReadLock, WriteLock, WriteLock}

// after handles the result of a call through a descriptor. After a lost session it opens all descriptors
// anew, and after an unknown outcome this one. An interrupted client continues.
func (p *locker) after(l *openLock, call *LockCall, err error) error {
	switch {
	case err != nil:
		return err
	case call.Orphaned():
		return p.startAgain()
	case call.Errno == syscall.ETIMEDOUT && call.locks():
		return p.reopen(l)
	}
	return nil
}

// reopen closes a descriptor, shows through the other one that the session is the same, and opens the file
// again.
func (p *locker) reopen(l *openLock) error {
	call, err := p.close(l)
	if err != nil {
		return err
	}
	lost := call.Orphaned()
	for _, other := range p.open {
		if other.lockFile == l.lockFile {
			shown, err := p.use(Read, other)
			if err != nil {
				return err
			}
			lost = lost || shown.Orphaned()
		}
	}
	if lost {
		return p.startAgain()
	}
	again, err := p.openLock(l.lockFile)
	if err != nil {
		return p.startAgain()
	}
	p.open = append(p.open, again)
	return nil
}

func (p *locker) close(l *openLock) (*LockCall, error) {
	p.open = slices.DeleteFunc(p.open, func(other *openLock) bool { return other == l })
	return p.use(Close, l)
}

func (p *locker) closeAll() error {
	for len(p.open) > 0 {
		if _, err := p.close(p.open[0]); err != nil {
			return err
		}
	}
	return nil
}

// startAgain is for a client that has lost its locks.
func (p *locker) startAgain() error {
	if err := p.closeAll(); err != nil {
		return err
	}
	return p.openAll()
}

// openAll retries until all files are open.
func (p *locker) openAll() error {
	deadline := time.Now().Add(remountPatience)
	for {
		err := p.Enter()
		if err == nil {
			err = p.tryOpenAll()
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		for _, l := range p.open {
			_ = unix.Close(l.fd) // no lock was taken through it
		}
		p.open = nil
		time.Sleep(remountInterval)
	}
}

func (p *locker) tryOpenAll() error {
	for _, file := range p.files {
		for range descriptors {
			l, err := p.openLock(file)
			if err != nil {
				return err
			}
			p.open = append(p.open, l)
		}
	}
	return nil
}
