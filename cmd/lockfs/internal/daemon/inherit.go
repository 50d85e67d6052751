package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockfs/fusefs/estate"
	"lockfs/raftstore/ids"
)

// inheritance is what the program that ran in this process before has handed over, or a guard process what was left of another.
type inheritance struct {
	state   []byte
	session *os.File
	files   []*os.File // of the connection
	guard   *os.File   // see handoverVariable; nil: there is none

	led ids.Term // see ledVariable

	// Of a guard that watches this process.
	watcher       int // its pid; 0: it does not
	token, socket *os.File
}

// isGuarded tells whether there is a guard that has another process go on should this one fail.
func (i *inheritance) isGuarded() bool {
	return i != nil && i.guard != nil && (i.isWaitedFor() || isUnattended() || isSupervised())
}

// isWaitedFor tells whether that guard waits for this process to say that it has another one.
func (i *inheritance) isWaitedFor() bool { return i != nil && i.guard != nil && i.watcher == 0 }

// guarded lets the guard of before go, if it is still there: there is to be another one.
func (i *inheritance) guarded() {
	if i == nil || i.guard == nil {
		return
	}
	if i.isWaitedFor() {
		_, _ = i.guard.Write([]byte{anotherGuard})
	} else if n, err := unix.Wait4(i.watcher, nil, unix.WNOHANG, nil); n == 0 && err == nil { // it is this process's child, and runs
		if guard, err := os.FindProcess(i.watcher); err == nil {
			_ = guard.Kill()
			_, _ = guard.Wait()
		}
	}
	_ = i.guard.Close()
	i.guard = nil
}

// sayFarewell has the guard of before end the mount, if this process was told to end before there was another one.
func (i *inheritance) sayFarewell(ctx context.Context) {
	if i != nil && i.guard != nil && ctx.Err() != nil {
		_, _ = i.guard.Write([]byte{toldToEnd})
		_ = i.guard.Close()
		i.guard = nil
	}
}

// newInheritance is of the files that handoverVariable names, and the pid.
func newInheritance(files []*os.File, watcher int) (*inheritance, error) {
	if len(files) < 5 || files[0] == nil || files[1] == nil || files[2] == nil {
		return nil, errors.New("what is handed over of a mount has to be five files at least")
	}
	state, err := estate.Load(files[0])
	if err = errors.Join(err, files[0].Close()); err != nil {
		return nil, fmt.Errorf("state of the mount: %w", err)
	}
	i := &inheritance{state: state, session: files[1], files: files[2:5], watcher: watcher}
	if len(files) > 5 {
		i.guard = files[5]
	}
	if len(files) > 7 {
		i.token, i.socket = files[6], files[7]
	}
	return i, nil
}

// inherit answers nil if nothing was handed over.
func inherit() (*inheritance, error) {
	list := os.Getenv(handoverVariable)
	if list == "" {
		return nil, nil
	}
	if err := os.Unsetenv(handoverVariable); err != nil {
		return nil, err
	}
	if os.Getenv(toldToEndVariable) != "" {
		if err := errors.Join(os.Unsetenv(toldToEndVariable), unix.Kill(os.Getpid(), unix.SIGTERM)); err != nil {
			return nil, err
		}
	}
	list, pid, _ := strings.Cut(list, ";")
	watcher := 0
	if pid != "" {
		var err error
		if watcher, err = strconv.Atoi(pid); err != nil {
			return nil, fmt.Errorf("%s: %w", handoverVariable, err)
		}
	}
	var files []*os.File
	for _, word := range strings.Split(list, ",") {
		fd, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", handoverVariable, err)
		}
		file, err := fileOf(fd)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	i, err := newInheritance(files, watcher)
	if led := os.Getenv(ledVariable); err == nil && led != "" {
		var term uint64
		if term, err = strconv.ParseUint(led, 10, 64); err != nil {
			err = fmt.Errorf("%s: %w", ledVariable, err)
		}
		i.led = ids.Term(term)
		err = errors.Join(err, os.Unsetenv(ledVariable))
	}
	return i, err
}

// fileOf is a descriptor that was handed over; nil for -1.
func fileOf(fd int) (*os.File, error) {
	if fd < 0 {
		return nil, nil
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, false); err != nil { // else the runtime polls it too
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), nameOf(fd)), nil
}

// nameOf is the path of the session file, which is removed by that, and something to print for others.
func nameOf(fd int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "handed over"
	}
	return name
}
