package conformance

import (
	"fmt"

	"golang.org/x/sys/unix"
)

var openCases = []Case{
	{Name: "open: errors of the path", Do: openPathErrors},
	{Name: "open: O_CREAT makes an empty file with the mode less the mask", Do: openCreates},
	{Name: "open: O_EXCL takes a name once, whatever it is", Do: openExclusive},
	{Name: "open: O_TRUNC empties a file, and only one that may be written", Do: openTruncates},
	{Name: "open: the handle decides, not the mode that the file was created with", Do: openReadOnlyMode},
	{Name: "open: O_APPEND writes at the end, from wherever", Do: openAppends},
	{Name: "open: O_DIRECTORY, and directories", Do: openDirectories},
	{Name: "open: O_NOFOLLOW", Do: openNoFollow},
	{Name: "open: O_CREAT follows a link to nothing and makes what it names", Do: openCreatesThroughLink},
	{Name: "open: O_PATH is a place, not a file", Do: openPath},
	{Name: "open: O_TMPFILE", Do: openTmpfile},
	{Name: "open: O_SYNC, O_DSYNC, O_NONBLOCK and O_NOCTTY change nothing", Do: openSync},
	{Name: "open: O_DIRECT", Do: openDirect},
	{Name: "open: O_NOATIME is the owner's", Do: openNoAtime},
	{Name: "open: permissions of file and directory", Do: openPermissions},
	{Name: "open: a file that was removed stays, and its name is free", Do: openUnlinkRecreate},
	{Name: "open: a removed file again by /proc/self/fd", Do: openRemovedByProc},
	{Name: "open: paths relative to an open directory, wherever it went", Do: openRelative},
	{Name: "openat2: RESOLVE_BENEATH and RESOLVE_IN_ROOT", Do: openat2Beneath},
	{Name: "openat2: RESOLVE_NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV", Do: openat2No},
	{Name: "openat2: unknown bits", Do: openat2Bits},
}

func openPathErrors(t *T) {
	t.files("f")
	t.ok(unix.Symlink("self", "self"))
	for path, want := range map[string]unix.Errno{
		"":                 unix.ENOENT,
		"none":             unix.ENOENT,
		"none/f":           unix.ENOENT,
		"f/x":              unix.ENOTDIR,
		"f/":               unix.ENOTDIR,
		"f/.":              unix.ENOTDIR,
		"self":             unix.ELOOP,
		"self/x":           unix.ELOOP,
		repeated("n", 256): unix.ENAMETOOLONG,
	} {
		t.fails(want, opening(path, unix.O_RDONLY), "open", path)
		t.fails(want, opening(path, unix.O_WRONLY), "open", path)
	}
	t.fails(unix.EISDIR, opening("new/", unix.O_CREAT|unix.O_WRONLY))
	t.fails(unix.ENOENT, opening("none/new", unix.O_CREAT|unix.O_WRONLY))
	t.fails(unix.ENOTDIR, opening("f/new", unix.O_CREAT|unix.O_WRONLY))
	_, err := unix.Openat(t.open("f", unix.O_RDONLY), "x", unix.O_RDONLY, 0)
	t.fails(unix.ENOTDIR, err)
	_, err = unix.Openat(-5, "f", unix.O_RDONLY, 0)
	t.fails(unix.EBADF, err)
}

func openCreates(t *T) {
	unix.Umask(0o027)
	fd := t.create("f", unix.O_CREAT|unix.O_RDWR, 0o666)
	st := t.fstat(fd)
	t.equal(uint32(unix.S_IFREG|0o640), st.Mode)
	t.equal(int64(0), st.Size)
	t.equal(1, int(st.Nlink))
	t.equal(st, t.lstat("f"), "fstat and lstat agree")
	unix.Umask(0)
	for _, mode := range []uint32{0, 0o200, 0o777, 0o4755, 0o2755, 0o1777} {
		name := fmt.Sprintf("%o", mode)
		t.create(name, unix.O_CREAT|unix.O_WRONLY, mode)
		t.equal(mode, t.permissions(name), "mode of the new file")
		t.create(name, unix.O_CREAT|unix.O_WRONLY, 0o123)
		t.equal(mode, t.permissions(name), "mode of a file that is there")
	}
}

func openExclusive(t *T) {
	const exclusive = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY
	t.open("f", exclusive)
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Symlink("nowhere", "dangling"))
	t.ok(unix.Mkfifo("fifo", 0o644))
	for _, name := range []string{"f", "d", "link", "dangling", "fifo", ".", ".."} {
		t.fails(unix.EEXIST, opening(name, exclusive), name)
	}
	t.missing("nowhere")
	t.ok(unix.Unlink("f"))
	t.open("f", exclusive)
}

func openTruncates(t *T) {
	t.file("f", "hello")
	held := t.open("f", unix.O_RDONLY)
	t.age("f")
	t.open("f", unix.O_WRONLY|unix.O_TRUNC)
	t.equal("", t.read("f"))
	t.equal("", t.pread(held))
	st := t.lstat("f")
	t.true(st.Mtim.Sec > past.Sec && st.Ctim.Sec > past.Sec, "the times move")
	t.equal(past.Sec, st.Atim.Sec)

	t.file("f", "hello")
	t.ok(unix.Chmod("f", 0o444))
	t.as(alice, func() {
		t.fails(unix.EACCES, opening("f", unix.O_WRONLY|unix.O_TRUNC))
		t.fails(unix.EACCES, opening("f", unix.O_RDONLY|unix.O_TRUNC))
		t.fails(unix.EACCES, opening("f", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC))
	})
	t.equal("hello", t.read("f"))
	t.mkdir("d")
	t.fails(unix.EISDIR, opening("d", unix.O_WRONLY|unix.O_TRUNC))
}

func openReadOnlyMode(t *T) {
	t.as(alice, func() {
		for _, mode := range []uint32{0o444, 0o440, 0} {
			name := fmt.Sprintf("%o", mode)
			fd := t.create(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, mode)
			t.write(fd, "held")
			t.equal("held", t.pread(fd))
			t.ok(unix.Ftruncate(fd, 2))
			t.fails(unix.EACCES, opening(name, unix.O_WRONLY))
			if mode == 0 {
				t.fails(unix.EACCES, opening(name, unix.O_RDONLY))
			}
		}
	})
	t.write(t.open("444", unix.O_WRONLY), "ROOT")
	t.equal("ROOT", t.read("444"))
}

func openAppends(t *T) {
	t.file("f", "one ")
	fd := t.open("f", unix.O_RDWR|unix.O_APPEND)
	t.write(fd, "two ")
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	t.ok(err)
	t.write(fd, "three ")
	_, err = unix.Pwrite(fd, []byte("four "), 1) // Linux still appends (pwrite(2))
	t.ok(err)
	t.equal("one two three four ", t.read("f"))

	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
	t.ok(err)
	_, err = unix.Pwrite(fd, []byte("ONE"), 0)
	t.ok(err)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND)
	t.ok(err)
	t.write(fd, "five")
	t.equal("ONE two three four five", t.read("f"))
}

func openDirectories(t *T) {
	t.mkdir("d")
	t.files("f")
	fd := t.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	t.fails(unix.ENOTDIR, opening("f", unix.O_RDONLY|unix.O_DIRECTORY))
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY | unix.O_CREAT} {
		t.fails(unix.EISDIR, opening("d", flags))
		t.fails(unix.EISDIR, opening(".", flags))
	}
	_, err := unix.Read(fd, make([]byte, 10))
	t.fails(unix.EISDIR, err)
	_, err = unix.Pread(fd, make([]byte, 10), 0)
	t.fails(unix.EISDIR, err)
	_, err = unix.Write(fd, []byte("x"))
	t.fails(unix.EBADF, err)
	t.fails(unix.EINVAL, unix.Ftruncate(fd, 0))
	t.ok(unix.Fsync(fd))
}

func openNoFollow(t *T) {
	t.file("f", "hello")
	t.mkdir("d")
	t.files("d/f")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Symlink("d", "dlink"))
	t.fails(unix.ELOOP, opening("link", unix.O_RDONLY|unix.O_NOFOLLOW))
	t.fails(unix.ELOOP, opening("link", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW))
	t.fails(unix.ENOTDIR, opening("dlink", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW))
	t.equal("hello", t.read("f"))
	t.open("f", unix.O_RDONLY|unix.O_NOFOLLOW)
	t.open("dlink/f", unix.O_RDONLY|unix.O_NOFOLLOW)
}

func openCreatesThroughLink(t *T) {
	t.mkdir("d")
	t.ok(unix.Symlink("d/target", "link"))
	t.write(t.open("link", unix.O_CREAT|unix.O_WRONLY), "hello")
	t.equal("hello", t.read("d/target"))
	t.equal(uint32(unix.S_IFLNK), t.lstat("link").Mode&unix.S_IFMT)
	t.ok(unix.Symlink("nowhere/target", "link2"))
	t.fails(unix.ENOENT, opening("link2", unix.O_CREAT|unix.O_WRONLY))
}

func openPath(t *T) {
	t.file("f", "hello")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	fd := t.open("f", unix.O_PATH)
	_, err := unix.Read(fd, make([]byte, 1))
	t.fails(unix.EBADF, err)
	_, err = unix.Write(fd, []byte("x"))
	t.fails(unix.EBADF, err)
	for _, err := range []error{
		unix.Fchmod(fd, 0o600), unix.Fchown(fd, 0, 0), unix.Ftruncate(fd, 0), unix.Fsync(fd), futimens(fd, nil),
		unix.Fsetxattr(fd, "user.x", nil, 0),
	} {
		t.fails(unix.EBADF, err)
	}
	t.equal(t.lstat("f"), t.fstat(fd))
	t.equal("hello", t.read(fmt.Sprintf("/proc/self/fd/%d", fd)))

	link := t.open("link", unix.O_PATH|unix.O_NOFOLLOW)
	t.equal(t.lstat("link").Ino, t.fstat(link).Ino)
	target := make([]byte, 10)
	n, err := unix.Readlinkat(link, "", target)
	t.ok(err)
	t.equal("f", string(target[:n]))

	place := t.open("d", unix.O_PATH|unix.O_DIRECTORY)
	t.ok(unix.Mkdirat(place, "inside", 0o755))
	t.ok(unix.Fchdir(place))
	t.ok(unix.Rmdir("inside"))
	t.ok(unix.Chdir(".."))

	t.ok(unix.Unlink("f"))
	t.equal(0, int(t.fstat(fd).Nlink))
	t.as(alice, func() {
		t.ok(unix.Mkdir("secret", 0))
		t.open("secret", unix.O_PATH)
	})
}

func openTmpfile(t *T) {
	err := opening(".", unix.O_TMPFILE|unix.O_RDWR)
	if t.Differs(NoTmpfile) {
		t.fails(unix.EOPNOTSUPP, err)
	} else {
		t.ok(err)
	}
	t.equal([]string{}, t.names("."))
}

func openSync(t *T) {
	for _, flag := range []int{unix.O_SYNC, unix.O_DSYNC, unix.O_NONBLOCK, unix.O_NOCTTY, unix.O_LARGEFILE} {
		name := fmt.Sprintf("f%x", flag)
		fd := t.open(name, unix.O_CREAT|unix.O_RDWR|flag)
		t.write(fd, "hello")
		t.equal("hello", t.read(name))
		t.ok(unix.Fsync(fd))
		t.ok(unix.Fdatasync(fd))
		t.ok(unix.Syncfs(fd))
	}
}

func openDirect(t *T) {
	const block = 4096
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR|unix.O_DIRECT)
	buffer, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	t.ok(err)
	t.cleanup(func() { _ = unix.Munmap(buffer) })
	copy(buffer, "hello")
	n, err := unix.Pwrite(fd, buffer, block)
	t.ok(err)
	t.equal(block, n)
	t.equal(string(make([]byte, block))+string(buffer), t.read("f"))
	n, err = unix.Pread(fd, buffer, block)
	t.ok(err)
	t.equal(block, n)
	t.equal("hello", string(buffer[:5]))
}

func openNoAtime(t *T) {
	t.files("f")
	t.ok(unix.Chmod("f", 0o666))
	t.open("f", unix.O_RDONLY|unix.O_NOATIME)
	t.as(alice, func() { t.fails(unix.EPERM, opening("f", unix.O_RDONLY|unix.O_NOATIME)) })
}

func openPermissions(t *T) {
	t.as(alice, func() {
		t.files("mine")
		t.mkdir("closed", "shared")
		t.files("closed/f")
		t.ok(unix.Chown("shared", -1, colleagues))
		t.ok(unix.Chmod("shared", 0o770))
		t.ok(unix.Chmod("closed", 0o700))
		t.ok(unix.Chmod("mine", 0o640))
		t.ok(unix.Chown("mine", -1, colleagues))
	})
	t.as(bob, func() {
		t.open("mine", unix.O_RDONLY)
		t.fails(unix.EACCES, opening("mine", unix.O_WRONLY))
		t.fails(unix.EACCES, opening("mine", unix.O_RDWR))
		t.fails(unix.EACCES, opening("closed/f", unix.O_RDONLY))
		t.fails(unix.EACCES, opening("closed/new", unix.O_CREAT|unix.O_WRONLY))
		t.fails(unix.EACCES, opening("closed/none", unix.O_RDONLY), "not ENOENT")
		t.files("shared/f")
	})
	t.equal(uint32(bob.id), t.lstat("shared/f").Uid)
	t.equal(uint32(bob.id), t.lstat("shared/f").Gid)
	t.as(eve, func() {
		t.fails(unix.EACCES, opening("mine", unix.O_RDONLY))
		t.fails(unix.EACCES, opening("shared/f", unix.O_RDONLY))
		t.fails(unix.EACCES, opening("shared", unix.O_RDONLY))
	})
	t.ok(unix.Chmod("shared", 0o330))
	t.as(bob, func() { // enter, but not list
		t.open("shared/f", unix.O_RDONLY)
		t.fails(unix.EACCES, opening("shared", unix.O_RDONLY))
	})
	t.ok(unix.Chmod("shared", 0o660))
	t.as(bob, func() { // list, but not enter
		t.open("shared", unix.O_RDONLY)
		t.fails(unix.EACCES, opening("shared/f", unix.O_RDONLY))
		t.fails(unix.EACCES, opening("shared/new", unix.O_CREAT|unix.O_WRONLY))
	})
	// Only the owner's bits count for the owner, even if others may do more.
	t.ok(unix.Chmod("mine", 0o077))
	t.as(alice, func() { t.fails(unix.EACCES, opening("mine", unix.O_RDONLY)) })
	t.as(eve, func() { t.open("mine", unix.O_RDWR) })
	t.open("mine", unix.O_RDWR)
}

func openUnlinkRecreate(t *T) {
	t.file("f", "old")
	fd := t.open("f", unix.O_RDWR)
	before := t.fstat(fd)
	t.ok(unix.Unlink("f"))
	t.equal(0, int(t.fstat(fd).Nlink))
	t.file("f", "new")
	t.true(t.lstat("f").Ino != before.Ino, "a new inode")
	t.write(fd, "OLD!")
	t.equal("OLD!", t.pread(fd))
	t.equal("new", t.read("f"))
	t.ok(unix.Ftruncate(fd, 1))
	t.ok(unix.Fchmod(fd, 0o600))
	t.ok(unix.Fchown(fd, alice.id, -1))
	t.ok(futimens(fd, &[2]unix.Timespec{past, past}))
	st := t.fstat(fd)
	t.equal(before.Ino, st.Ino)
	t.equal(int64(1), st.Size)
	t.equal(uint32(unix.S_IFREG|0o600), st.Mode)
	t.equal(uint32(alice.id), st.Uid)
	t.equal(past, st.Mtim)
	t.equal(uint32(0), t.lstat("f").Uid)
	t.fails(unix.ENOENT, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "back", unix.AT_SYMLINK_FOLLOW))
}

func openRemovedByProc(t *T) {
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR)
	t.write(fd, "hello")
	t.ok(unix.Unlink("f"))
	again := t.open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR)
	t.equal("hello", t.pread(again))
	t.write(again, "HE")
	t.equal("HEllo", t.pread(fd))
}

func openRelative(t *T) {
	t.mkdir("d", "d/sub", "e")
	dir := t.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	sub := t.open("d/sub", unix.O_RDONLY|unix.O_DIRECTORY)
	create := func(at int, name string) error {
		fd, err := unix.Openat(at, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	t.ok(create(dir, "a"))
	t.ok(unix.Rename("d", "e/d"))
	t.ok(create(dir, "b"))
	t.ok(create(dir, "../c"))
	t.ok(create(sub, "../../../up"))
	t.equal([]string{"a", "b", "sub"}, t.names("e/d"))
	t.equal([]string{"c", "d"}, t.names("e"))
	t.equal([]string{"e", "up"}, t.names("."))
	t.ok(unix.Rmdir("e/d/sub"))
	t.fails(unix.ENOENT, create(sub, "x"))
	t.fails(unix.ENOENT, unix.Mkdirat(sub, "x", 0o755))
}

// openat2 repeats the call after EAGAIN: the kernel refuses to follow .. during any concurrent rename.
func (t *T) openat2(dir int, path string, resolve uint64) error {
	for {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC, Resolve: resolve})
		if err == nil {
			return unix.Close(fd)
		}
		if err != unix.EAGAIN {
			return err
		}
	}
}

func openat2Beneath(t *T) {
	t.mkdir("d", "d/sub")
	t.files("f", "d/f")
	t.ok(unix.Symlink("../f", "d/out"))
	t.ok(unix.Symlink("/f", "d/absolute"))
	t.ok(unix.Symlink("sub/../f", "d/in"))
	dir := t.open("d", unix.O_PATH)
	t.ok(t.openat2(dir, "f", unix.RESOLVE_BENEATH))
	t.ok(t.openat2(dir, "sub/../f", unix.RESOLVE_BENEATH))
	t.ok(t.openat2(dir, "in", unix.RESOLVE_BENEATH))
	for _, path := range []string{"../f", "out", "absolute", "/f"} {
		t.fails(unix.EXDEV, t.openat2(dir, path, unix.RESOLVE_BENEATH), path)
	}
	for _, path := range []string{"../f", "../../f", "absolute", "/f", "in", "out"} {
		t.ok(t.openat2(dir, path, unix.RESOLVE_IN_ROOT), path)
	}
	t.fails(unix.ENOENT, t.openat2(dir, "/none", unix.RESOLVE_IN_ROOT))
}

func openat2No(t *T) {
	t.mkdir("d")
	t.files("d/f")
	t.ok(unix.Symlink("d", "dlink"))
	t.ok(unix.Symlink("d/f", "flink"))
	here := t.open(".", unix.O_PATH)
	t.ok(t.openat2(here, "d/f", unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS|unix.RESOLVE_NO_XDEV))
	t.fails(unix.ELOOP, t.openat2(here, "dlink/f", unix.RESOLVE_NO_SYMLINKS))
	t.fails(unix.ELOOP, t.openat2(here, "flink", unix.RESOLVE_NO_SYMLINKS))
	t.ok(t.openat2(here, "flink", unix.RESOLVE_NO_MAGICLINKS))
	fd := t.open("d/f", unix.O_RDONLY)
	t.fails(unix.ELOOP, t.openat2(here, fmt.Sprintf("/proc/self/fd/%d", fd), unix.RESOLVE_NO_MAGICLINKS))
	root := t.open(t.plan.Root, unix.O_PATH)
	t.fails(unix.EXDEV, t.openat2(root, "..", unix.RESOLVE_NO_XDEV))
	t.ok(unix.Symlink(t.plan.Outside, "out"))
	t.fails(unix.EXDEV, t.openat2(here, "out", unix.RESOLVE_NO_XDEV))
}

func openat2Bits(t *T) {
	_, err := unix.Openat2(unix.AT_FDCWD, "f", &unix.OpenHow{Resolve: 1 << 40})
	t.fails(unix.EINVAL, err)
	_, err = unix.Openat2(unix.AT_FDCWD, "f", &unix.OpenHow{Flags: 1 << 40})
	t.fails(unix.EINVAL, err)
	_, err = unix.Openat2(unix.AT_FDCWD, "f", &unix.OpenHow{Flags: unix.O_CREAT, Mode: 1 << 20})
	t.fails(unix.EINVAL, err)
	_, err = unix.Openat2(unix.AT_FDCWD, "f", &unix.OpenHow{Mode: 0o644})
	t.fails(unix.EINVAL, err, "a mode without O_CREAT")
	t.missing("f")
}
