package lockfile

import (
	"context"
	"io/fs"
	"os"
	"syscall"
	"time"

	"lockfs/formats/pause"
)

// watcher waits for changes of a file. A nil watcher only waits for time to pass.
type watcher struct {
	path   string
	file   fs.FileInfo // the watched file
	events *os.File
}

// changes are the events of a release, a removal, a replacement or a write, but not of a read.
const changes = syscall.IN_ATTRIB | syscall.IN_MODIFY | syscall.IN_MOVE_SELF | syscall.IN_DELETE_SELF

// watch watches the present file of the name. It returns nil if the file system does not report changes.
//
// The file must not stay open: the kernel would not report its removal on another host.
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

const openPath = 0x200000 // O_PATH, missing in package syscall: a descriptor without opening the file

// local has the types of file systems changed only by this host (statfs(2)).
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

// tellsOfChanges reports whether inotify reports all changes of a file, or on lockfs those of lock files.
func tellsOfChanges(f *os.File, mode fs.FileMode) bool {
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &system); err != nil {
		return false
	}
	return local[uint32(system.Type)] || mode.IsRegular() && isOnMount(f)
}

// current reports whether the watched file still has the name. If so, each change since the begin of the
// watch ends wait.
func (w *watcher) current() bool {
	if w == nil {
		return false
	}
	now, err := os.Lstat(w.path)
	return err == nil && os.SameFile(now, w.file)
}

// wait waits for a change, at most for the given time, and reports whether there was one. The error comes
// from ctx.
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
