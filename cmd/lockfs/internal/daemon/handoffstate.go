package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockfs/fusefs/crashstate"
	"lockfs/raftstore/ids"
)

// handoffState is the state handed over by the earlier program in this process, or by a guard for a dead
// process.
type handoffState struct {
	state   []byte
	session *os.File
	files   []*os.File // of the FUSE connection
	guard   *os.File   // see handoverVariable; may be nil

	led ids.Term // see ledVariable

	// Of a guard for this process.
	watcher       int // its PID; 0: none
	token, socket *os.File
}

// isGuarded reports whether a guard starts another process if this one fails.
func (i *handoffState) isGuarded() bool {
	return i != nil && i.guard != nil && (i.isWaitedFor() || isUnattended() || isSupervised())
}

// isWaitedFor reports whether the guard waits until this process has another one.
func (i *handoffState) isWaitedFor() bool { return i != nil && i.guard != nil && i.watcher == 0 }

// guarded releases the earlier guard before a new one starts.
func (i *handoffState) guarded() {
	if i == nil || i.guard == nil {
		return
	}
	if i.isWaitedFor() {
		_, _ = i.guard.Write([]byte{anotherGuard})
	} else if n, err := unix.Wait4(i.watcher, nil, unix.WNOHANG, nil); n == 0 && err == nil { // a running child of this process
		if guard, err := os.FindProcess(i.watcher); err == nil {
			_ = guard.Kill()
			_, _ = guard.Wait()
		}
	}
	_ = i.guard.Close()
	i.guard = nil
}

// announceEnd makes the earlier guard end the mount if a signal came before this process has a new guard.
func (i *handoffState) announceEnd(ctx context.Context) {
	if i != nil && i.guard != nil && ctx.Err() != nil {
		_, _ = i.guard.Write([]byte{toldToEnd})
		_ = i.guard.Close()
		i.guard = nil
	}
}

// newHandoffState takes the files of handoverVariable, and the PID of the guard.
func newHandoffState(files []*os.File, watcher int) (*handoffState, error) {
	if len(files) < 5 || files[0] == nil || files[1] == nil || files[2] == nil {
		return nil, errors.New("handover of a mount: expected at least five files")
	}
	state, err := crashstate.Load(files[0])
	if err = errors.Join(err, files[0].Close()); err != nil {
		return nil, fmt.Errorf("state of the mount: %w", err)
	}
	i := &handoffState{state: state, session: files[1], files: files[2:5], watcher: watcher}
	if len(files) > 5 {
		i.guard = files[5]
	}
	if len(files) > 7 {
		i.token, i.socket = files[6], files[7]
	}
	return i, nil
}

// inherit returns nil if nothing was handed over.
func inherit() (*handoffState, error) {
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
	i, err := newHandoffState(files, watcher)
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

// fileOf returns the file of an inherited descriptor; nil for -1.
func fileOf(fd int) (*os.File, error) {
	if fd < 0 {
		return nil, nil
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, false); err != nil { // otherwise the runtime polls it too
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), nameOf(fd)), nil
}

// nameOf returns the path of the session file, which is removed by it, or a name for messages.
func nameOf(fd int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "handed over"
	}
	return name
}
