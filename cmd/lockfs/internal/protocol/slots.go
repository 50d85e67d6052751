package protocol

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/pause"
)

// mostSlots bounds how many files a waiter checks.
const mostSlots = 1000

// slotPause is the pause before the next attempt to take a slot, since another process may take it first.
const slotPause = 10 * time.Millisecond

// slots is a set of locks, of which a command needs one. They are files in a directory, so all callers with
// the same count share them.
type slots struct {
	runLock // the acquired one

	dir   string
	count int
	wait  time.Duration
	open  func(path string) (runLock, error) // opens a lock without waiting for it

	notice *notice
}

func newSlots(dir string, count int, wait time.Duration, open func(path string) (runLock, error)) (*slots, error) {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the caller's umask says who may have a slot
		return nil, err
	}
	return &slots{dir: dir, count: count, wait: wait, open: open}, nil
}

func (s *slots) path(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("slot-%d.lock", number))
}

// acquire implements [runLock].
func (s *slots) acquire(ctx context.Context) (token string, err error) {
	if s.wait == 0 {
		return s.try(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	s.notice.begin()
	defer s.notice.end()
	neglected, stop := s.neglected(patience)
	leave, err := standInLine(patience, filepath.Join(s.dir, ".queue"), s.notice, neglected)
	stop()
	if errors.Is(err, errNeglected) {
		leave, err = func() {}, nil
	}
	if patience.Err() != nil {
		return "", notAcquired(ctx, s.wait, fmt.Errorf("others wait for one of the %d slots in %s", s.count, cli.Word(s.dir)))
	}
	if err != nil {
		return "", err
	}
	defer leave()
	for {
		token, err := s.try(ctx)
		if !isBlocked(err) {
			return token, err
		}
		until, stop := s.notice.untilDue(patience)
		s.awaitOne(until)
		due := until.Err() != nil
		stop()
		switch {
		case patience.Err() != nil:
			return "", notAcquired(ctx, s.wait, fmt.Errorf("all %d slots in %s are held", s.count, cli.Word(s.dir)))
		case due:
			s.notice.tell()
		}
	}
}

// look returns a lookup of a free slot, or of the slot held for the longest time.
func (s *slots) look(at func(path string) (lockState, any)) lookup {
	return func() (state lockState, more any) {
		for number := 1; number <= s.count; number++ {
			one, fields := at(s.path(number))
			if number == 1 || one.State == string(formats.Free) || one.Age != nil && state.Age != nil && *one.Age > *state.Age {
				state, more = one, fields
			}
			if state.State == string(formats.Free) {
				return state, more
			}
		}
		state.Reason += fmt.Sprintf("; all %d slots are held, this one for longest", s.count)
		return state, more
	}
}

// try takes the first free slot.
func (s *slots) try(ctx context.Context) (token string, err error) {
	for number := 1; number <= s.count; number++ {
		lock, err := s.open(s.path(number))
		if err != nil {
			return "", err
		}
		token, err := lock.acquire(ctx)
		if err == nil {
			s.runLock = lock
			return token, nil
		}
		if !isBlocked(err) || ctx.Err() != nil {
			return "", err
		}
	}
	return "", cli.Exit(cli.ExitBlocked, fmt.Errorf("not acquired: all %d slots in %s are held", s.count, cli.Word(s.dir)))
}

// isBlocked reports whether other processes hold a slot. A slot that this process could not give back does
// not count.
func isBlocked(err error) bool {
	var exit *cli.ExitStatus
	return errors.As(err, &exit) && exit.Code == cli.ExitBlocked && !errors.Is(err, errNotReleased)
}

// awaitOne waits until a slot may be free, or ctx ends. No check is under way when it returns. On a mount of
// lockfs, a process may remove only the stale lock that it has read last. A check in the middle of the next
// attempt would let this attempt remove a lock without having checked it.
func (s *slots) awaitOne(ctx context.Context) {
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	free := make(chan struct{}, s.count)
	for number := 1; number <= s.count; number++ {
		looks.Go(func() {
			_, _ = formats.Wait(looking, s.path(number))
			free <- struct{}{}
		})
	}
	<-free
	stop()
	looks.Wait()
	_ = pause.For(ctx, slotPause)
}

// neglectedAfter is how long a slot stays free until processes behind the first in the line may take it. The
// first takes it within milliseconds, unless it (Ctrl-Z, SIGSTOP) or its host is stopped.
const neglectedAfter = 2 * time.Second

var errNeglected = errors.New("a slot is free, and the first process in the line does not take it")

// neglected returns a channel that is closed once a slot was free at two checks in a row. No check is under
// way once stop has returned; see awaitOne.
func (s *slots) neglected(ctx context.Context) (free chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	free = make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for looks := 0; looks < 2; {
			if pause.For(ctx, neglectedAfter) != nil {
				return
			}
			if looks++; !s.anyFree() {
				looks = 0
			}
		}
		close(free)
	})
	return free, func() {
		cancel()
		looking.Wait()
	}
}

// anyFree reports whether a slot is free or stale.
func (s *slots) anyFree() bool {
	for number := 1; number <= s.count; number++ {
		status, err := formats.Check(s.path(number), formats.Rule{})
		if err == nil && (status.State == formats.Free || status.State == formats.Stale) {
			return true
		}
	}
	return false
}

// standInLine waits until all earlier processes have left the line. On a mount of lockfs, flock(2) keeps
// their order. Once neglected is closed, it returns errNeglected. When ctx ends, it returns, but stays in the
// line until flock does: only the end of the process ends that call.
func standInLine(ctx context.Context, path string, notice *notice, neglected <-chan struct{}) (leave func(), err error) {
	line, err := openLine(path)
	if err != nil {
		return nil, err
	}
	leave = func() { _ = line.Close() }
	var failed error
	first := make(chan struct{})
	go func() {
		defer close(first)
		for failed = syscall.EINTR; errors.Is(failed, syscall.EINTR); {
			failed = syscall.Flock(int(line.Fd()), syscall.LOCK_EX)
		}
	}()
	for {
		until, stop := notice.untilDue(ctx)
		select {
		case <-first:
			stop()
			if failed != nil {
				leave()
				return nil, &os.PathError{Op: "flock", Path: path, Err: failed}
			}
			return leave, nil
		case <-neglected:
			stop()
			err = errNeglected
		case <-until.Done():
			stop()
			err = ctx.Err()
		}
		if err != nil {
			go func() {
				<-first
				leave()
			}()
			return nil, err
		}
		notice.tell()
	}
}

// openLine opens or creates the file of the line. It does not open an existing file with O_CREAT. In
// directories like /tmp, the kernel refuses that for files of other users (fs.protected_regular).
func openLine(path string) (*os.File, error) {
	for {
		line, err := os.Open(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return line, err
		}
		line, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444) //nolint:gosec // whoever may have a slot may stand in line
		if !errors.Is(err, fs.ErrExist) {
			return line, err
		}
	}
}
