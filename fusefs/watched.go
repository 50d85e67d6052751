package fusefs

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// removals tells the kernel of watched files that somebody else has removed, for inotify(7) to raise
// delete-self.
//
// The kernel takes the directory's lock for that, which a program may hold that waits for an answer of this
// very process; should that be killed just then, both wait until somebody ends the mount (Connection). So only what is
// watched is told of. That does not reach the mount: it is looked up in /proc, after the removal, so that nothing is missed
// that was watched before. There is much to read, on a host with many descriptors for seconds. So that is done seldom, and
// only if the kernel still knows an inode that was removed: what is watched it does not forget.
type removals struct {
	knows   func(ino uint64) bool
	watched func() map[uint64]bool
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
	// watchedShare is how many times as long as a look the pause after it is, at least.
	watchedShare = 20
	// mostPending is how many removals wait for a look; beyond, some are not told of.
	mostPending = 4096
)

func newRemovals(knows func(ino uint64) bool, device uint32, notify func(parent, ino uint64, name string)) *removals {
	return &removals{
		knows: knows, notify: notify, pending: make(chan removal, mostPending),
		watched: func() map[uint64]bool { return watchedInodes(device) },
	}
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
		var pause time.Duration
		select {
		case first := <-r.pending:
			pause = r.tell(first)
		case <-stop:
			return
		}
		select {
		case <-time.After(pause):
		case <-stop:
			return
		}
	}
}

// tell answers how long nothing more is to be told.
func (r *removals) tell(first removal) (pause time.Duration) {
	batch := []removal{first}
	for len(r.pending) > 0 {
		batch = append(batch, <-r.pending)
	}
	batch = slices.DeleteFunc(batch, func(removed removal) bool { return !r.knows(removed.ino) })
	if len(batch) == 0 {
		return 0
	}
	began := time.Now()
	watched := r.watched()
	pause = max(watchedLook, watchedShare*time.Since(began))
	for _, removed := range batch {
		if watched[removed.ino] {
			r.notify(removed.parent, removed.ino, removed.name)
		}
	}
	return pause
}

// watchedInodes answers what the processes that can be seen from here watch on a device with inotify. What has ended meanwhile
// is left out.
func watchedInodes(device uint32) map[uint64]bool {
	watched := make(map[uint64]bool)
	proc, _ := os.ReadDir("/proc")
	for _, process := range proc {
		if _, err := strconv.Atoi(process.Name()); err == nil {
			addWatchedBy(watched, "/proc/"+process.Name(), device)
		}
	}
	return watched
}

func addWatchedBy(watched map[uint64]bool, process string, device uint32) {
	descriptors, err := os.Open(process + "/fd")
	if err != nil {
		return
	}
	defer func() { _ = descriptors.Close() }()
	names, _ := descriptors.Readdirnames(-1)
	target := make([]byte, len(inotifyTarget)+1)
	for _, name := range names {
		n, err := unix.Readlinkat(int(descriptors.Fd()), name, target)
		if err != nil || string(target[:n]) != inotifyTarget {
			continue
		}
		if info, err := os.ReadFile(process + "/fdinfo/" + name); err == nil {
			addWatched(watched, info, device)
		}
	}
}

// inotifyTarget is what a descriptor of inotify(7) is shown as.
const inotifyTarget = "anon_inode:inotify"

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
