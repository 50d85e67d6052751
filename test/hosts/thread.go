package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A thread is an OS thread of the test process in separate namespaces. A program started by it is in these
// namespaces from its first instruction. It is still a child of the test process, which can signal it and
// wait for it directly.
type thread struct {
	calls chan func()
	tid   int
}

// startThread runs setup, which enters the namespaces.
func startThread(setup func() error) (*thread, error) {
	t := &thread{calls: make(chan func())}
	ready := make(chan error)
	go offMainThread(func() {
		t.tid = unix.Gettid()
		err := setup()
		ready <- err
		if err != nil {
			return
		}
		for call := range t.calls {
			call()
		}
	})
	return t, <-ready
}

// offMainThread runs f on a separate thread that ends with f. The main thread cannot end, and /proc/self
// refers to it.
func offMainThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return // the thread ends, because it is still locked
	}
	elsewhere := make(chan struct{})
	go offMainThread(func() {
		close(elsewhere)
		f()
	})
	<-elsewhere
	runtime.UnlockOSThread()
}

// do runs f on the thread. Only one function runs at a time, so f must be quick.
func (t *thread) do(f func() error) error {
	err := make(chan error)
	t.calls <- func() { err <- f() }
	return <-err
}

// end ends the thread and waits until its namespaces are gone.
func (t *thread) end() error {
	close(t.calls)
	task := filepath.Join("/proc/self/task", strconv.Itoa(t.tid))
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(task); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	return fmt.Errorf("thread %d is still there", t.tid)
}

// enterHost moves the calling thread into the namespaces of a process.
func enterHost(pid int) error {
	// A thread that shares its working directory cannot change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	for _, namespace := range []struct {
		name string
		kind int
	}{
		{"net", unix.CLONE_NEWNET},
		{"uts", unix.CLONE_NEWUTS},
		{"pid", unix.CLONE_NEWPID}, // for children; the thread stays where it is
		{"mnt", unix.CLONE_NEWNS},  // last: another /proc comes with it
	} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, namespace.name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s namespace: %w", namespace.name, err)
		}
		err = unix.Setns(fd, namespace.kind)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("enter %s namespace: %w", namespace.name, err)
		}
	}
	return nil
}
