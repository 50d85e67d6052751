package conformance

import (
	"fmt"

	"golang.org/x/sys/unix"
)

var linkCases = []Case{
	{Name: "link: two names of one inode, with the count right on either at once", Do: links},
	{Name: "link: to what is open, not synced, or no file", Do: linksToOthers},
	{Name: "link: errors", Do: linkErrors},
	{Name: "symlink: keeps its target, whatever it is", Do: symlinks},
	{Name: "symlink: errors", Do: symlinkErrors},
	{Name: "readlink: errors and small buffers", Do: readlinkErrors},
	{Name: "unlink: one name at a time, and the times", Do: unlinks},
	{Name: "unlink: errors", Do: unlinkErrors},
}

func links(t *T) {
	t.file("f", "hello")
	t.age("f")
	t.age(".")
	fd := t.open("f", unix.O_RDONLY)
	t.ok(unix.Link("f", "g"))
	for _, st := range []unix.Stat_t{t.lstat("f"), t.lstat("g"), t.fstat(fd)} {
		t.equal(2, int(st.Nlink))
		t.equal(t.lstat("f").Ino, st.Ino)
		t.equal(past, st.Mtim)
		t.true(st.Ctim.Sec > past.Sec, "the inode changed")
	}
	here := t.lstat(".")
	t.true(here.Mtim.Sec > past.Sec && here.Ctim.Sec > past.Sec)
	t.write(t.open("g", unix.O_WRONLY), "J")
	t.equal("Jello", t.read("f"))
	t.ok(unix.Unlink("f"))
	t.equal(1, int(t.lstat("g").Nlink))
	t.equal(1, int(t.fstat(fd).Nlink))
}

func linksToOthers(t *T) {
	fd := t.open("temporary", unix.O_CREAT|unix.O_WRONLY)
	t.write(fd, "held")
	t.ok(unix.Link("temporary", "lock"))
	t.equal("held", t.read("lock"))
	t.equal(2, int(t.fstat(fd).Nlink))

	t.ok(unix.Symlink("lock", "symlink"))
	t.ok(unix.Link("symlink", "symlink2"))
	t.equal(t.lstat("symlink").Ino, t.lstat("symlink2").Ino, "link does not follow")
	t.ok(unix.Linkat(unix.AT_FDCWD, "symlink", unix.AT_FDCWD, "followed", unix.AT_SYMLINK_FOLLOW))
	t.equal(t.lstat("lock").Ino, t.lstat("followed").Ino)

	t.ok(unix.Mkfifo("fifo", 0o644))
	t.ok(unix.Link("fifo", "fifo2"))
	t.equal(2, int(t.lstat("fifo").Nlink))

	place := t.open("lock", unix.O_PATH)
	t.ok(unix.Linkat(place, "", unix.AT_FDCWD, "by-place", unix.AT_EMPTY_PATH))
	t.ok(unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "by-proc", unix.AT_SYMLINK_FOLLOW))
	t.equal(5, int(t.lstat("lock").Nlink))
}

func linkErrors(t *T) {
	t.files("f", "g")
	t.mkdir("d")
	t.ok(unix.Symlink("nowhere", "dangling"))
	for _, row := range []struct {
		from, to string
		want     unix.Errno
	}{
		{"f", "g", unix.EEXIST}, {"f", "f", unix.EEXIST}, {"f", "d", unix.EEXIST}, {"f", "dangling", unix.EEXIST},
		{"none", "x", unix.ENOENT}, {"f", "none/x", unix.ENOENT}, {"f", "", unix.ENOENT}, {"", "x", unix.ENOENT},
		{"d", "x", unix.EPERM}, {"f/x", "y", unix.ENOTDIR}, {"f", "g/x", unix.ENOTDIR}, {"d", "f", unix.EEXIST},
	} {
		t.fails(row.want, unix.Link(row.from, row.to), row.from, row.to)
	}
	t.fails(unix.EINVAL, unix.Linkat(unix.AT_FDCWD, "f", unix.AT_FDCWD, "x", 1<<20))
	t.ok(unix.Chmod("d", 0o755))
	t.as(alice, func() {
		t.files("mine")
		t.fails(unix.EACCES, unix.Link("mine", "d/x"))
	})
	t.equal(1, int(t.lstat("f").Nlink))
}

func symlinks(t *T) {
	unix.Umask(0o077)
	for i, target := range []string{"f", "nowhere", "/", "../..", "a b\n\xff", ".", "//x//", repeated("t", 1000)} {
		path := fmt.Sprintf("link%d", i)
		t.ok(unix.Symlink(target, path))
		st := t.lstat(path)
		t.equal(int64(len(target)), st.Size)
		t.equal(uint32(unix.S_IFLNK|0o777), st.Mode, "the mask does not count")
		buffer := make([]byte, 2000)
		n, err := unix.Readlink(path, buffer)
		t.ok(err)
		t.equal(target, string(buffer[:n]))
	}
	t.as(alice, func() { t.ok(unix.Symlink("x", "alices")) })
	t.equal(uint32(alice.id), t.lstat("alices").Uid)
	t.ok(unix.Lchown("alices", bob.id, colleagues))
	t.equal(uint32(bob.id), t.lstat("alices").Uid)
	t.equal(uint32(colleagues), t.lstat("alices").Gid)
}

func symlinkErrors(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Symlink("nowhere", "dangling"))
	for path, want := range map[string]unix.Errno{
		"f": unix.EEXIST, "d": unix.EEXIST, "dangling": unix.EEXIST, "f/x": unix.ENOTDIR, "none/x": unix.ENOENT,
		"": unix.ENOENT,
	} {
		t.fails(want, unix.Symlink("target", path), path)
	}
	t.fails(unix.ENOENT, unix.Symlink("", "x"))
	t.ok(unix.Chmod("d", 0o755))
	t.as(alice, func() { t.fails(unix.EACCES, unix.Symlink("target", "d/x")) })
}

func readlinkErrors(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Symlink("0123456789", "link"))
	buffer := make([]byte, 4)
	n, err := unix.Readlink("link", buffer)
	t.ok(err)
	t.equal("0123", string(buffer[:n]))
	for path, want := range map[string]unix.Errno{
		"f": unix.EINVAL, "d": unix.EINVAL, "none": unix.ENOENT, "f/x": unix.ENOTDIR, "": unix.ENOENT,
		"link/": unix.ENOENT,
	} {
		_, err := unix.Readlink(path, buffer)
		t.fails(want, err, path)
	}
}

func unlinks(t *T) {
	t.file("f", "hello")
	t.ok(unix.Link("f", "g"))
	t.age("g")
	t.age(".")
	t.ok(unix.Unlink("f"))
	t.missing("f")
	st := t.lstat("g")
	t.equal(1, int(st.Nlink))
	t.true(st.Ctim.Sec > past.Sec)
	t.equal(past, st.Mtim)
	here := t.lstat(".")
	t.true(here.Mtim.Sec > past.Sec && here.Ctim.Sec > past.Sec)
	t.ok(unix.Symlink("g", "link"))
	t.ok(unix.Unlink("link"))
	t.equal("hello", t.read("g"))
	t.ok(unix.Unlinkat(t.open(".", unix.O_PATH), "g", 0))
	t.missing("g")
}

func unlinkErrors(t *T) {
	t.files("f")
	t.mkdir("d", "empty")
	t.files("d/f")
	for path, want := range map[string]unix.Errno{
		"none": unix.ENOENT, "none/x": unix.ENOENT, "f/x": unix.ENOTDIR, "d": unix.EISDIR, "empty": unix.EISDIR,
		"": unix.ENOENT, "d/..": unix.EISDIR,
	} {
		t.fails(want, unix.Unlink(path), path)
	}
	t.fails(unix.EINVAL, unix.Unlinkat(unix.AT_FDCWD, "f", 1<<20))
	t.fails(unix.EBADF, unix.Unlinkat(-5, "f", 0))
	t.ok(unix.Chmod("d", 0o755))
	t.as(alice, func() {
		t.fails(unix.EACCES, unix.Unlink("d/f"))
		t.fails(unix.ENOENT, unix.Unlink("d/none"), "not EACCES")
	})
	t.ok(unix.Chmod("f", 0))
	t.as(alice, func() { t.ok(unix.Unlink("f")) })
}
