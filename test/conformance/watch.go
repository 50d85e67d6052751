package conformance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

var watchCases = []Case{
	{Name: "inotify: what happens to a directory's entries on this host", Do: watchDirectory},
	{Name: "inotify: a watched file that is removed or replaced on this host", Do: watchFile},
	{Name: "inotify: errors", Do: watchErrors},
	{Name: "fanotify: of a file and of all", Do: fanotify},
}

// watcher reads the events of one watch.
type watcher struct {
	t    *T
	fd   int
	seen []happening // events before the next await
}

// happening is an inotify event.
type happening struct {
	what uint32
	name string
}

func (t *T) watch(path string, mask uint32) *watcher {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	t.ok(err)
	t.cleanup(func() { _ = unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, path, mask)
	t.ok(err)
	return &watcher{t: t, fd: fd}
}

// await waits for an event after those awaited before.
func (w *watcher) await(what uint32, name string) {
	want := happening{what, name}
	for !slices.Contains(w.seen, want) {
		w.t.true(w.t.readable(w.fd, 10*time.Second), fmt.Sprintf("%+v does not come, but %+v", want, w.seen))
		w.read()
	}
	w.seen = w.seen[slices.Index(w.seen, want)+1:]
}

func (w *watcher) read() {
	buffer := make([]byte, 4096)
	n, err := unix.Read(w.fd, buffer)
	w.t.ok(err)
	// struct inotify_event: wd, mask, cookie, len, name (inotify(7)).
	const maskAt, lengthAt = 4, 12
	for rest := buffer[:n]; len(rest) > 0; {
		end := unix.SizeofInotifyEvent + binary.NativeEndian.Uint32(rest[lengthAt:])
		name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:end], []byte{0})
		w.seen = append(w.seen, happening{binary.NativeEndian.Uint32(rest[maskAt:]), string(name)})
		rest = rest[end:]
	}
}

func watchDirectory(t *T) {
	t.mkdir("d")
	w := t.watch("d", unix.IN_ALL_EVENTS)
	t.file("d/f", "hello")
	w.await(unix.IN_CREATE, "f")
	w.await(unix.IN_MODIFY, "f")
	w.await(unix.IN_CLOSE_WRITE, "f")
	t.ok(unix.Chmod("d/f", 0o600))
	w.await(unix.IN_ATTRIB, "f")
	t.ok(unix.Rename("d/f", "d/g"))
	w.await(unix.IN_MOVED_TO, "g")
	t.ok(unix.Unlink("d/g"))
	w.await(unix.IN_DELETE, "g")
	t.mkdir("d/sub")
	w.await(unix.IN_CREATE|unix.IN_ISDIR, "sub")
	t.ok(unix.Rmdir("d/sub"))
	w.await(unix.IN_DELETE|unix.IN_ISDIR, "sub")
	t.ok(unix.Rmdir("d"))
	w.await(unix.IN_DELETE_SELF, "")
	w.await(unix.IN_IGNORED, "")
}

func watchFile(t *T) {
	for _, remove := range []func(){
		func() { t.ok(unix.Unlink("lock")) },
		func() { t.files("new"); t.ok(unix.Rename("new", "lock")) },
	} {
		t.files("lock")
		w := t.watch("lock", unix.IN_DELETE_SELF)
		t.true(!t.readable(w.fd, 0))
		remove()
		w.await(unix.IN_DELETE_SELF, "")
		w.await(unix.IN_IGNORED, "")
	}
	w := t.watch("lock", unix.IN_MOVE_SELF|unix.IN_ATTRIB)
	t.ok(unix.Rename("lock", "moved"))
	w.await(unix.IN_MOVE_SELF, "")
	t.ok(unix.Unlink("moved"))
	w.await(unix.IN_ATTRIB, "")
}

func watchErrors(t *T) {
	t.files("f")
	t.ok(unix.Chmod("f", 0o200))
	w := t.watch(".", unix.IN_CREATE)
	_, err := unix.InotifyAddWatch(w.fd, "none", unix.IN_CREATE)
	t.fails(unix.ENOENT, err)
	_, err = unix.InotifyAddWatch(w.fd, "f", unix.IN_CREATE|unix.IN_ONLYDIR)
	t.fails(unix.ENOTDIR, err)
	t.as(alice, func() {
		_, err := unix.InotifyAddWatch(w.fd, "f", unix.IN_MODIFY)
		t.fails(unix.EACCES, err)
	})
}

func fanotify(t *T) {
	t.files("f")
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, 0)
	t.ok(err)
	t.cleanup(func() { _ = unix.Close(fd) })
	const events = unix.FAN_MODIFY | unix.FAN_DELETE_SELF
	t.ok(unix.FanotifyMark(fd, unix.FAN_MARK_ADD, events, unix.AT_FDCWD, "f"))
	t.ok(unix.Unlink("f"))
	t.true(t.readable(fd, 10*time.Second))
	err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, events, unix.AT_FDCWD, ".")
	if t.Differs(NoFanotify) {
		t.fails(unix.ENODEV, err)
	} else {
		t.ok(err)
	}
}
