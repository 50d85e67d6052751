package conformance

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// betweenCases use two mounts of one file system. For the kernel, two lockfs mounts are two file systems, as
// on two hosts.
var betweenCases = []Case{
	{Name: "elsewhere: all of an inode is the same at once", Do: sameElsewhere},
	{Name: "elsewhere: modes hold at once", Do: modeElsewhere},
	{Name: "elsewhere: an open file is told from the one that has its name now", Do: replacedElsewhere},
	{Name: "elsewhere: an open file that is renamed, cut and extended", Do: openChangedElsewhere},
	{Name: "elsewhere: an open file that is removed", Do: removedElsewhere},
	{Name: "elsewhere: appends", Do: appendElsewhere},
	{Name: "elsewhere: RWF_APPEND", Do: appendOnceElsewhere},
	{Name: "elsewhere: an open directory shows what comes and goes", Do: listElsewhere},
	{Name: "elsewhere: a directory that somebody is in is removed", Do: directoryRemovedElsewhere},
	{Name: "elsewhere: a directory that somebody is in is moved", Do: directoryMovedElsewhere},
	{Name: "elsewhere: a new mapping shows what was written", Do: mapElsewhere},
	{Name: "elsewhere: fifos and sockets", Do: fifoElsewhere},
	{Name: "elsewhere: leases", Do: leaseElsewhere},
	{Name: "elsewhere: inotify, of a directory", Do: watchDirectoryElsewhere},
	{Name: "elsewhere: inotify, of a lock file that is removed", Do: watchRemovedElsewhere},
}

// there returns a path in the case's directory on the other mount.
func (t *T) there(path string) string { return filepath.Join(t.plan.Other, filepath.Base(t.dir), path) }

// sameInode compares everything except the device.
func (t *T) sameInode(path string) {
	here, there := t.lstat(path), t.lstat(t.there(path))
	there.Dev = here.Dev
	t.equal(here, there, path)
}

func sameElsewhere(t *T) {
	t.file("f", "hello")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Mkfifo("fifo", 0o644))
	for _, name := range []string{"f", "d", "link", "fifo"} {
		t.sameInode(name)
		t.age(t.there(name))
		t.sameInode(name)
		t.ok(unix.Lchown(name, alice.id, colleagues))
		t.sameInode(name)
	}
	t.equal("hello", t.read(t.there("link")))
	t.file(t.there("f"), "changed")
	t.equal("changed", t.read("f"))
	t.ok(unix.Link(t.there("f"), t.there("g")))
	t.equal(2, int(t.lstat("f").Nlink))
	t.equal(t.lstat("f").Ino, t.lstat("g").Ino)
	t.ok(unix.Setxattr(t.there("f"), "user.x", nil, 0))
	t.equal([]string{"user.x"}, t.attributes("g"))
	t.ok(unix.Unlink(t.there("f")))
	t.missing("f")
	t.ok(unix.Mkdir("f", 0o755))
	t.fails(unix.EEXIST, unix.Mkdir(t.there("f"), 0o755))
}

func modeElsewhere(t *T) {
	t.mkdir("d")
	t.file("d/f", "hello")
	t.as(alice, func() { t.read("d/f") })
	t.ok(unix.Chmod(t.there("d/f"), 0o600))
	t.as(alice, func() { t.fails(unix.EACCES, opening("d/f", unix.O_RDONLY)) })
	t.ok(unix.Chmod(t.there("d/f"), 0o644))
	t.as(alice, func() { t.read("d/f") })
	t.ok(unix.Chmod(t.there("d"), 0o700))
	t.as(alice, func() {
		t.fails(unix.EACCES, opening("d/f", unix.O_RDONLY))
		t.fails(unix.EACCES, unix.Access("d/f", unix.F_OK))
	})
}

// replacedElsewhere is a program's check that its open lock file still has the name.
func replacedElsewhere(t *T) {
	t.files("lock")
	fd := t.open("lock", unix.O_RDWR)
	t.equal(t.fstat(fd).Ino, t.stat("lock").Ino)
	t.files(t.there("new"))
	t.ok(unix.Rename(t.there("new"), t.there("lock")))
	t.true(t.fstat(fd).Ino != t.stat("lock").Ino)
	t.equal(0, int(t.fstat(fd).Nlink))
}

func openChangedElsewhere(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	t.ok(unix.Rename(t.there("f"), t.there("g")))
	t.write(fd, "J")
	t.equal("Jello", t.read(t.there("g")))
	t.ok(unix.Truncate(t.there("g"), 2))
	t.equal("Je", t.pread(fd))
	t.file(t.there("g"), "longer than before")
	t.equal("longer than before", t.pread(fd))
	end, err := unix.Seek(fd, 0, unix.SEEK_END)
	t.ok(err)
	t.equal(int64(18), end)
}

func removedElsewhere(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	t.ok(unix.Unlink(t.there("f")))
	t.equal("hello", t.pread(fd))
	t.equal(0, int(t.fstat(fd).Nlink))
	_, err := unix.Write(fd, []byte("J"))
	t.ok(err)
	t.equal("Jello", t.pread(fd))
	t.ok(unix.Ftruncate(fd, 1))
	t.equal("J", t.pread(fd))
}

func appendElsewhere(t *T) {
	t.file("f", "")
	here, there := t.open("f", unix.O_WRONLY|unix.O_APPEND), t.open(t.there("f"), unix.O_WRONLY|unix.O_APPEND)
	t.write(here, "one ")
	t.write(there, "two ")
	t.write(here, "three ")
	t.write(there, "four")
	t.equal("one two three four", t.read("f"))
}

func appendOnceElsewhere(t *T) {
	t.file("f", "one ")
	fd := t.open("f", unix.O_RDWR)
	t.equal("one ", t.pread(fd))
	t.write(t.open(t.there("f"), unix.O_WRONLY|unix.O_APPEND), "two ")
	_, err := unix.Pwritev2(fd, [][]byte{[]byte("three")}, 0, unix.RWF_APPEND)
	t.ok(err)
	if t.Differs(AppendOnce) {
		t.equal("one three", t.read("f"))
	} else {
		t.equal("one two three", t.read("f"))
	}
}

func listElsewhere(t *T) {
	t.files("gone")
	fd := t.open(".", unix.O_RDONLY)
	t.files(t.there("new"))
	t.ok(unix.Unlink(t.there("gone")))
	list := t.listing(fd)
	t.true(contains(list, "new") && !contains(list, "gone"))
	t.ok(unix.Rename(t.there("new"), t.there("newer")))
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	t.ok(err)
	list = t.listing(fd)
	t.true(contains(list, "newer") && !contains(list, "new"))
}

func directoryRemovedElsewhere(t *T) {
	t.mkdir("d")
	t.ok(unix.Chdir("d"))
	fd := t.open(".", unix.O_RDONLY)
	t.ok(unix.Rmdir(t.there("d")))
	t.fails(unix.ENOENT, opening("new", unix.O_CREAT|unix.O_WRONLY))
	t.fails(unix.ENOENT, unix.Mkdir("new", 0o755))
	t.fails(unix.ENOENT, unix.Symlink("x", "new"))
	t.fails(unix.ENOENT, unix.Rename("../d", "../e"))
	t.equal(0, int(t.fstat(fd).Nlink))
	t.files("../f")
	t.ok(unix.Chdir(".."))
	t.equal([]string{"f"}, t.names("."))
}

func directoryMovedElsewhere(t *T) {
	t.mkdir("a", "b", "a/d")
	t.files("a/in-a", "b/in-b", "a/d/f")
	t.ok(unix.Chdir("a/d"))
	t.ok(unix.Rename(t.there("a/d"), t.there("b/d")))
	t.equal([]string{"f"}, t.names("."))
	t.files("new")
	t.equal([]string{"f", "new"}, t.names(t.there("b/d")))
	if t.Differs(MovedElsewhere) {
		t.equal([]string{"in-a"}, t.names(".."))
		t.lstat(t.path("b/d"))
	}
	t.equal([]string{"d", "in-b"}, t.names(".."))
	where := make([]byte, 4096)
	n, err := unix.Getcwd(where)
	t.ok(err)
	t.equal(t.path("b/d"), string(where[:n-1]))
	t.ok(unix.Chdir(t.dir))
}

func mapElsewhere(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDONLY)
	for _, content := range []string{"hello", "HELLO", "world"} {
		t.file(t.there("f"), content)
		mapped, err := unix.Mmap(fd, 0, 5, unix.PROT_READ, unix.MAP_PRIVATE)
		t.ok(err)
		t.equal(content, string(mapped))
		t.ok(unix.Munmap(mapped))
	}
}

func fifoElsewhere(t *T) {
	t.ok(unix.Mkfifo("fifo", 0o644))
	t.open("fifo", unix.O_RDONLY|unix.O_NONBLOCK)
	err := opening(t.there("fifo"), unix.O_WRONLY|unix.O_NONBLOCK)
	server, client := t.socket(), t.socket()
	t.ok(unix.Bind(server, &unix.SockaddrUnix{Name: "socket"}))
	t.ok(unix.Listen(server, 1))
	t.ok(unix.Chdir(t.there("."))) // the path may be too long for an address
	connectErr := unix.Connect(client, &unix.SockaddrUnix{Name: "socket"})
	t.ok(unix.Chdir(t.dir))
	if t.Differs(NamesOnly) {
		t.fails(unix.ENXIO, err)
		t.fails(unix.ECONNREFUSED, connectErr)
	} else {
		t.ok(err)
		t.ok(connectErr)
	}
}

func leaseElsewhere(t *T) {
	t.files("f")
	_, err := unix.FcntlInt(uintptr(t.open("f", unix.O_WRONLY)), unix.F_SETLEASE, unix.F_WRLCK)
	t.ok(err)
	t.fails(unix.EAGAIN, opening("f", unix.O_RDONLY|unix.O_NONBLOCK))
	err = opening(t.there("f"), unix.O_RDONLY|unix.O_NONBLOCK)
	if t.Differs(LeaseElsewhere) {
		t.ok(err)
	} else {
		t.fails(unix.EAGAIN, err)
	}
}

// unseen limits the wait for an event without a report by lockfs.
const unseen = 200 * time.Millisecond

func watchDirectoryElsewhere(t *T) {
	w := t.watch(".", unix.IN_CREATE|unix.IN_DELETE)
	t.files(t.there("f"))
	t.ok(unix.Unlink(t.there("f")))
	if t.Differs(UnseenElsewhere) {
		t.true(!t.readable(w.fd, unseen))
	} else {
		w.await(unix.IN_CREATE, "f")
		w.await(unix.IN_DELETE, "f")
	}
}

// watchRemovedElsewhere tests the only event that lockfs can raise for another host.
func watchRemovedElsewhere(t *T) {
	for _, remove := range []func(){
		func() { t.ok(unix.Unlink(t.there("lock"))) },
		func() { t.files(t.there("new")); t.ok(unix.Rename(t.there("new"), t.there("lock"))) },
	} {
		t.files("lock")
		w := t.watch("lock", unix.IN_DELETE_SELF)
		remove()
		w.await(unix.IN_DELETE_SELF, "")
		w.await(unix.IN_IGNORED, "")
	}
}
