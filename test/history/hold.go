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

// namesAtOnce is how many calls of a client in a row go to the same name, before all go on to the next.
const namesAtOnce = 6

// PlayHolds creates names, or opens those that others have created, and locks the files, so many times. Names are  never
// removed: only a creation that is given up may take one back.
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

// hold opens a name, tries to lock it, writes a pid and shows for a while that it has it. It answers whether the mount may be gone.
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
			return false, nil // it was taken back
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

// held is when a client surely had the lock of a name.
type held struct {
	client     int
	start, end int64
	call       *LockCall
}

// CheckHolds answers nil if nobody had the lock of a name while another one had it. From when its request was answered, a client
// has it until the last time that its descriptor was seen to be good. It also answers how often somebody had one.
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
