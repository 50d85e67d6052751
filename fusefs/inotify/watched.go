package inotify

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
)

// Inodes returns the inodes on a device with inotify watches of visible processes. It omits processes that
// end meanwhile.
func Inodes(device uint32) map[ids.Inode]bool {
	watched := make(map[ids.Inode]bool)
	proc, _ := os.ReadDir("/proc")
	for _, process := range proc {
		if _, err := strconv.Atoi(process.Name()); err == nil {
			addWatchedBy(watched, "/proc/"+process.Name(), device)
		}
	}
	return watched
}

func addWatchedBy(watched map[ids.Inode]bool, process string, device uint32) {
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

// inotifyTarget is the link of an inotify(7) descriptor in /proc.
const inotifyTarget = "anon_inode:inotify"

// addWatched parses lines such as "inotify wd:1 ino:2 sdev:2d mask:400 ..." (proc_pid_fdinfo(5)).
func addWatched(watched map[ids.Inode]bool, info []byte, device uint32) {
	lines := bufio.NewScanner(bytes.NewReader(info))
	for lines.Scan() {
		var wd, ino, sdev uint64
		if _, err := fmt.Sscanf(lines.Text(), "inotify wd:%x ino:%x sdev:%x", &wd, &ino, &sdev); err == nil && uint32(sdev) == device {
			watched[ids.Inode(ino)] = true
		}
	}
}
