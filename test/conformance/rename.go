package conformance

import (
	"golang.org/x/sys/unix"
)

var renameCases = []Case{
	{Name: "rename: moves, replaces, and the times", Do: renames},
	{Name: "rename: what was replaced stays open", Do: renameReplaces},
	{Name: "rename: two names of one inode, and a name onto itself", Do: renameSame},
	{Name: "rename: directories", Do: renameDirectories},
	{Name: "rename: errors", Do: renameErrors},
	{Name: "rename: permissions", Do: renamePermissions},
	{Name: "rename: RENAME_NOREPLACE", Do: renameNoReplace},
	{Name: "rename: RENAME_EXCHANGE", Do: renameExchange},
	{Name: "rename: other flags", Do: renameFlags},
}

func rename(from, to string, flags uint) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
}

func renames(t *T) {
	t.mkdir("a", "b")
	fd := t.open("a/f", unix.O_CREAT|unix.O_RDWR)
	t.write(fd, "hello")
	before := t.lstat("a/f")
	for _, path := range []string{"a/f", "a", "b"} {
		t.age(path)
	}
	t.ok(unix.Rename("a/f", "b/g"))
	t.missing("a/f")
	t.equal("hello", t.read("b/g"), "also while it is open")
	after := t.lstat("b/g")
	t.equal(before.Ino, after.Ino)
	t.equal(past, after.Mtim)
	for _, dir := range []string{"a", "b"} {
		st := t.lstat(dir)
		t.true(st.Mtim.Sec > past.Sec && st.Ctim.Sec > past.Sec, dir)
	}
	t.write(fd, "!")
	t.equal("hello!", t.read("b/g"))
	t.ok(unix.Symlink("x", "link"))
	t.ok(unix.Rename("link", "link2"))
	t.equal(uint32(unix.S_IFLNK), t.lstat("link2").Mode&unix.S_IFMT)
	t.ok(unix.Rename("b/g", "link2"), "a link is replaced, not followed")
	t.equal("hello!", t.read("link2"))
	t.missing("x")
}

func renameReplaces(t *T) {
	t.file("new", "new")
	t.file("lock", "old")
	t.ok(unix.Link("lock", "other"))
	fd := t.open("lock", unix.O_RDWR)
	t.age("lock")
	t.ok(unix.Rename("new", "lock"))
	t.missing("new")
	t.equal("new", t.read("lock"))
	t.equal("old", t.read("other"))
	st := t.fstat(fd)
	t.equal(1, int(st.Nlink))
	t.true(st.Ctim.Sec > past.Sec)
	t.file("new", "newer")
	t.ok(unix.Rename("new", "other"))
	t.equal(0, int(t.fstat(fd).Nlink))
	t.equal("old", t.pread(fd))
	t.write(fd, "OLD")
	t.equal("OLD", t.pread(fd))
}

func renameSame(t *T) {
	t.file("f", "hello")
	t.ok(unix.Link("f", "g"))
	t.mkdir("d")
	t.ok(unix.Rename("f", "g"))
	t.ok(unix.Rename("f", "f"))
	t.ok(unix.Rename("d", "d"))
	t.equal([]string{"d", "f", "g"}, t.names("."), "both names stay")
	t.equal(2, int(t.lstat("f").Nlink))
	t.fails(unix.EEXIST, rename("f", "g", unix.RENAME_NOREPLACE))
	t.fails(unix.EEXIST, rename("f", "f", unix.RENAME_NOREPLACE))
	t.ok(rename("f", "g", unix.RENAME_EXCHANGE))
}

func renameDirectories(t *T) {
	t.mkdir("a", "b", "a/d", "empty", "full")
	t.files("a/d/f", "full/f")
	t.equal(3, int(t.lstat("a").Nlink))
	t.ok(unix.Rename("a/d", "b/d"))
	t.equal(2, int(t.lstat("a").Nlink))
	t.equal(3, int(t.lstat("b").Nlink))
	t.equal(t.lstat("b").Ino, t.lstat("b/d/..").Ino)
	held := t.open("empty", unix.O_RDONLY)
	t.ok(unix.Rename("b/d", "empty"), "an empty directory is replaced")
	t.equal([]string{"f"}, t.names("empty"))
	t.equal(0, int(t.fstat(held).Nlink))
	t.equal(2, int(t.lstat("b").Nlink))
	t.fails(unix.ENOTEMPTY, unix.Rename("empty", "full"))
	t.fails(unix.ENOTEMPTY, unix.Rename("b", "full"))
	t.mkdir("a/x")
	t.fails(unix.ENOTEMPTY, unix.Rename("a/x", "a"), "onto its own parent")
}

func renameErrors(t *T) {
	t.files("f")
	t.mkdir("d", "d/sub")
	t.ok(unix.Symlink("d", "dlink"))
	for _, row := range []struct {
		from, to string
		want     unix.Errno
	}{
		{"none", "x", unix.ENOENT}, {"f", "none/x", unix.ENOENT}, {"none/x", "y", unix.ENOENT},
		{"", "x", unix.ENOENT}, {"f", "", unix.ENOENT},
		{"f", "d", unix.EISDIR}, {"d", "f", unix.ENOTDIR}, {"f/x", "y", unix.ENOTDIR}, {"d", "f/x", unix.ENOTDIR},
		{"d", "d/x", unix.EINVAL}, {"d", "d/sub/x", unix.EINVAL}, {"d", "dlink", unix.ENOTDIR}, {"f", "dlink/sub", unix.EISDIR},
		{"d/.", "x", unix.EBUSY}, {"d/sub/..", "x", unix.EBUSY}, {"d", "..", unix.EBUSY},
	} {
		t.fails(row.want, unix.Rename(row.from, row.to), row.from, row.to)
	}
	t.fails(unix.EBADF, unix.Renameat(-5, "f", unix.AT_FDCWD, "x"))
	t.equal([]string{"d", "dlink", "f"}, t.names("."))
}

func renamePermissions(t *T) {
	t.mkdir("closed", "sticky")
	t.files("closed/f", "sticky/f", "f")
	t.ok(unix.Chmod("closed", 0o755))
	t.ok(unix.Chmod("sticky", 0o1777))
	t.as(alice, func() {
		t.files("mine", "sticky/mine")
		t.mkdir("alices")
		t.fails(unix.EACCES, unix.Rename("closed/f", "x"))
		t.fails(unix.EACCES, unix.Rename("mine", "closed/x"))
		t.fails(unix.EPERM, unix.Rename("sticky/f", "x"))
		t.fails(unix.EPERM, unix.Rename("mine", "sticky/f"))
		t.fails(unix.EPERM, rename("sticky/mine", "sticky/f", unix.RENAME_EXCHANGE))
		t.ok(unix.Rename("sticky/mine", "sticky/mine2"))
		t.ok(unix.Rename("f", "sticky/g"), "a file of root's in a directory that is everybody's")
		t.fails(unix.EPERM, unix.Rename("sticky/g", "f"))
	})
	// Moving a directory writes its .., so its own mode counts.
	t.ok(unix.Mkdir("roots", 0o755))
	t.as(alice, func() {
		t.fails(unix.EACCES, unix.Rename("roots", "alices/roots"))
		t.ok(unix.Rename("roots", "roots2"))
	})
}

func renameNoReplace(t *T) {
	t.file("f", "f")
	t.file("g", "g")
	t.mkdir("d")
	t.ok(unix.Symlink("nowhere", "dangling"))
	for _, name := range []string{"g", "d", "dangling"} {
		t.fails(unix.EEXIST, rename("f", name, unix.RENAME_NOREPLACE), name)
		t.fails(unix.EEXIST, rename("d", name, unix.RENAME_NOREPLACE), name)
	}
	t.fails(unix.ENOENT, rename("none", "x", unix.RENAME_NOREPLACE))
	t.ok(rename("f", "d/f", unix.RENAME_NOREPLACE))
	t.ok(rename("d", "e", unix.RENAME_NOREPLACE))
	t.equal("f", t.read("e/f"))
}

func renameExchange(t *T) {
	t.file("f", "f")
	t.mkdir("d", "d/sub")
	t.file("d/g", "g")
	t.ok(rename("f", "d/g", unix.RENAME_EXCHANGE))
	t.equal("g", t.read("f"))
	t.equal("f", t.read("d/g"))
	t.ok(rename("f", "d", unix.RENAME_EXCHANGE), "of different kinds")
	t.equal("g", t.read("d"))
	t.equal([]string{"g", "sub"}, t.names("f"))
	t.ok(rename("d", "f/sub", unix.RENAME_EXCHANGE))
	t.equal(2, int(t.lstat("f").Nlink), "a directory went")
	t.equal(t.lstat(".").Ino, t.lstat("d/..").Ino)
	t.fails(unix.ENOENT, rename("f", "none", unix.RENAME_EXCHANGE))
	t.fails(unix.ENOENT, rename("none", "f", unix.RENAME_EXCHANGE))
	t.fails(unix.EINVAL, rename("f", "f/sub", unix.RENAME_EXCHANGE))
	t.fails(unix.EINVAL, rename("f/sub", "f", unix.RENAME_EXCHANGE))
}

func renameFlags(t *T) {
	t.files("f", "g")
	t.fails(unix.EINVAL, rename("f", "g", unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE))
	t.fails(unix.EINVAL, rename("f", "g", unix.RENAME_WHITEOUT|unix.RENAME_EXCHANGE))
	t.fails(unix.EINVAL, rename("f", "x", 1<<20))
	err := rename("f", "x", unix.RENAME_WHITEOUT)
	if t.Differs(NoWhiteout) {
		t.fails(unix.EINVAL, err)
	} else {
		t.ok(err)
	}
}
