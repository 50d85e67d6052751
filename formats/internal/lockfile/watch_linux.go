package lockfile

import (
	"context"
	"io/fs"
	"os"
	"syscall"
	"time"

	"lockfs/formats/pause"
)

// watcher waits for something to happen to a file. A nil one cannot, and waits for time to pass.
type watcher struct {
	path   string
	file   fs.FileInfo // what is watched
	events *os.File
}

// changes are what a release, a removal, a replacement or a new content raises. Not that it is read.
const changes = syscall.IN_ATTRIB | syscall.IN_MODIFY | syscall.IN_MOVE_SELF | syscall.IN_DELETE_SELF

// watch watches the file that has the name now. It answers nil where changes are not told of.
//
// The file must not stay open: while it is, the kernel does not tell of a removal on another host.
func watch(path string) *watcher {
	fd, err := syscall.Open(path, openPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	defer func() { _ = f.Close() }()
	file, err := f.Stat()
	if err != nil || !tellsOfChanges(f, file.Mode()) {
		return nil
	}
	events, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &watcher{path: path, file: file, events: os.NewFile(uintptr(events), "inotify")}
	if _, err := syscall.InotifyAddWatch(events, descriptor(f), changes); err != nil {
		w.close()
		return nil
	}
	return w
}

const openPath = 0x200000 // O_PATH, which package syscall lacks: to name the file without opening it

// Types of file systems that only this host changes (statfs(2)).
var local = map[uint32]bool{
	0xef53:     true, // ext2, ext3, ext4
	0x58465342: true, // xfs
	0x9123683e: true, // btrfs
	0x01021994: true, // tmpfs
	0x858458f6: true, // ramfs
	0x794c7630: true, // overlayfs
	0xf2f52010: true, // f2fs
	0xca451a4e: true, // bcachefs
	0x2fc12fc1: true, // zfs
}

// tellsOfChanges knows the file systems where inotify tells of all changes, or lockfs of those of files that matter.
func tellsOfChanges(f *os.File, mode fs.FileMode) bool {
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &system); err != nil {
		return false
	}
	return local[uint32(system.Type)] || mode.IsRegular() && isOnMount(f)
}

// current tells whether the file that is watched still has the name: then whatever happens to it from now on, or
// has happened since it is watched, ends wait.
func (w *watcher) current() bool {
	if w == nil {
		return false
	}
	now, err := os.Lstat(w.path)
	return err == nil && os.SameFile(now, w.file)
}

// wait waits for a change, at most for so long, and tells whether there was one. The error is that of ctx.
func (w *watcher) wait(ctx context.Context, atMost time.Duration) (changed bool, err error) {
	if w == nil || w.events.SetReadDeadline(time.Now().Add(atMost)) != nil {
		return false, pause.For(ctx, atMost)
	}
	stop := context.AfterFunc(ctx, func() { _ = w.events.SetReadDeadline(time.Unix(0, 1)) })
	defer stop()
	_, err = w.events.Read(make([]byte, 4096))
	return err == nil, ctx.Err()
}

func (w *watcher) close() {
	if w != nil {
		_ = w.events.Close()
	}
}
