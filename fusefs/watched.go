package fusefs

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// removals tells the kernel of watched files that somebody else has removed, for inotify(7) to raise
// delete-self.
//
// The kernel takes the directory's lock for that, which a program may hold that waits for an answer of this
// very process; should that be killed just then, both wait until somebody ends the mount (Connection). So only what is
// watched is told of. That does not reach the mount: it is looked up in /proc, after the removal, so that nothing is missed
// that was watched before; and seldom, because there is much to read.
type removals struct {
	device  uint32 // of the mount, as inotify shows it
	notify  func(parent, ino uint64, name string)
	pending chan removal
}

type removal struct {
	parent, ino uint64
	name        string
}

const (
	// watchedLook is the least time between two looks for what is watched.
	watchedLook = time.Second
	// mostPending is how many removals wait for a look; beyond, some are not told of.
	mostPending = 4096
)

func newRemovals(device uint32, notify func(parent, ino uint64, name string)) *removals {
	return &removals{device: device, notify: notify, pending: make(chan removal, mostPending)}
}

func (r *removals) add(parent uint64, name string, ino uint64) {
	select {
	case r.pending <- removal{parent, ino, name}:
	default:
	}
}

// run ends with stop.
func (r *removals) run(stop <-chan struct{}) {
	for {
		select {
		case first := <-r.pending:
			r.tell(first)
		case <-stop:
			return
		}
		select {
		case <-time.After(watchedLook):
		case <-stop:
			return
		}
	}
}

func (r *removals) tell(first removal) {
	batch := []removal{first}
	for len(r.pending) > 0 {
		batch = append(batch, <-r.pending)
	}
	watched := watchedInodes(r.device)
	for _, removed := range batch {
		if watched[removed.ino] {
			r.notify(removed.parent, removed.ino, removed.name)
		}
	}
}

// watchedInodes answers what the processes that can be seen from here watch on a device with inotify.
func watchedInodes(device uint32) map[uint64]bool {
	watched := make(map[uint64]bool)
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*") // fails only for a bad pattern
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err != nil || target != "anon_inode:inotify" {
			continue
		}
		info, err := os.ReadFile(strings.Replace(descriptor, "/fd/", "/fdinfo/", 1))
		if err != nil {
			continue // it has ended
		}
		addWatched(watched, info, device)
	}
	return watched
}

// addWatched reads lines such as "inotify wd:1 ino:2 sdev:2d mask:400 ..." (proc_pid_fdinfo(5)).
func addWatched(watched map[uint64]bool, info []byte, device uint32) {
	lines := bufio.NewScanner(bytes.NewReader(info))
	for lines.Scan() {
		var wd, ino, sdev uint64
		if _, err := fmt.Sscanf(lines.Text(), "inotify wd:%x ino:%x sdev:%x", &wd, &ino, &sdev); err == nil && uint32(sdev) == device {
			watched[ino] = true
		}
	}
}
