package history

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// namesAtOnce is the number of consecutive calls of a client on the same name.
const namesAtOnce = 6

// PlayHolds creates names, or opens existing ones, and locks the files, the given number of times. Names are
// never removed; only an abandoned creation may be undone.
func (c *Client) PlayHolds(random *rand.Rand, times int, longestPause time.Duration) error {
	pause := func() { time.Sleep(time.Duration(random.Int64N(int64(longestPause)))) }
	if err := c.Enter(); err != nil {
		return err
	}
	defer c.Leave()
	for n := range times {
		lost, err := c.hold(random, fmt.Sprintf("n%d", n/namesAtOnce), pause)
		if err == nil && lost {
			err = c.Enter()
		}
		if err != nil {
			return err
		}
		pause()
	}
	return nil
}

// hold opens a name, tries to lock it, writes a pid and holds the lock for a while. lost means that the mount
// may be gone.
func (c *Client) hold(random *rand.Rand, name string, pause func()) (lost bool, err error) {
	kind, flags := Open, unix.O_CREAT
	if random.IntN(2) == 0 {
		kind, flags = Create, unix.O_CREAT|unix.O_EXCL
	}
	l := &openLock{lockFile: &lockFile{name: name}, fd: -1}
	opening := c.lockCall(kind, l)
	err = c.recorder.Do(opening, func() error {
		var err error
		l.fd, err = unix.Openat(c.dir, name, unix.O_RDWR|unix.O_CLOEXEC|flags, fileMode)
		return err
	})
	if err == nil && opening.Errno == syscall.EEXIST {
		l.fd, err = unix.Openat(c.dir, name, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return false, nil // it was undone
		}
	} else if err != nil || opening.Errno != 0 {
		return opening.Orphaned(), err
	}
	l.opened = opening.Seq
	call, err := c.tryLock(Flock, l, WriteLock, everything)
	if err == nil && call.Errno == 0 {
		call, err = c.writePid(l, random.IntN(2) == 0)
	}
	for range 3 {
		if err != nil || call.Errno != 0 {
			break
		}
		pause()
		call, err = c.use(Read, l)
	}
	if err == nil {
		_, err = c.use(Close, l)
	}
	return call.Orphaned(), err
}

// held is the time for which a client certainly had the lock of a name.
type held struct {
	client     int
	start, end int64
	call       *LockCall
}

// CheckHolds returns nil if no two clients had the lock of a name at once. A client has it from the answer of
// its request to the last success of its descriptor. holds is the number of acquisitions.
func CheckHolds(calls []*LockCall) (holds int, err error) {
	type descriptor struct{ client, opened int }
	type file struct{ dir, name string }
	byFile := make(map[file][]*held)
	having := make(map[file]map[descriptor]*held)
	slices.SortFunc(calls, func(a, b *LockCall) int { return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq)) })
	for _, call := range calls {
		f, by := file{call.Dir, call.File}, descriptor{call.Client, call.Opened}
		switch {
		case call.End == 0 || call.Errno != 0:
		case call.Kind == Flock:
			h := &held{call.Client, call.End, call.End, call}
			if having[f] == nil {
				having[f] = make(map[descriptor]*held)
			}
			having[f][by] = h
			byFile[f] = append(byFile[f], h)
			holds++
		case call.Kind == Read && having[f][by] != nil:
			having[f][by].end = call.Start
		}
	}
	for _, all := range byFile {
		slices.SortFunc(all, func(a, b *held) int { return cmp.Compare(a.start, b.start) })
		last := all[0]
		for _, h := range all[1:] {
			if h.start < last.end {
				return holds, fmt.Errorf("%w: two had a lock, from %d to %d and from %d to %d: %v; %v",
					ErrImpossible, last.start, last.end, h.start, h.end, last.call, h.call)
			}
			if h.end > last.end {
				last = h
			}
		}
	}
	return holds, nil
}
