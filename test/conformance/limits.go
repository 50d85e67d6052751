package conformance

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fullCases are for a file system with few inodes.
var fullCases = []Case{
	{Name: "full: no inode more, and a removal makes room", Do: fullOfInodes},
}

// readOnlyCases are for a read-only mount.
var readOnlyCases = []Case{
	{Name: "read-only: whatever would change something", Do: readOnly},
}

// ReadOnlyScript creates the files for the read-only cases in the current directory.
const ReadOnlyScript = `mkdir prepared; cd prepared; echo hello > f; mkdir d; ln -s f link; mkfifo fifo; chmod 666 f; chmod 777 . d`

func fullOfInodes(t *T) {
	const far = 10_000 // more than the limit
	t.file("f", "hello")
	held := t.open("held", unix.O_CREAT|unix.O_RDWR)
	t.mkdir("d")
	last := ""
	for i := range far {
		name := fmt.Sprintf("f%d", i)
		if err := opening(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY); err != nil {
			t.fails(unix.ENOSPC, err)
			break
		}
		last = name
	}
	t.true(last != "")
	makers := map[string]func(name string) error{
		"open":    func(name string) error { return opening(name, unix.O_CREAT|unix.O_WRONLY) },
		"mkdir":   func(name string) error { return unix.Mkdir(name, 0o755) },
		"symlink": func(name string) error { return unix.Symlink("x", name) },
		"mkfifo":  func(name string) error { return unix.Mkfifo(name, 0o644) },
		"mknod":   func(name string) error { return unix.Mknod(name, unix.S_IFREG|0o644, 0) },
	}
	for what, make := range makers {
		t.fails(unix.ENOSPC, make("new"), what)
		t.missing("new")
	}
	var st unix.Statfs_t
	t.ok(unix.Statfs(".", &st))
	t.equal(uint64(0), st.Ffree)

	t.ok(unix.Rename(last, "d/last"), "what is there can still be worked with")
	t.ok(unix.Chmod("d/last", 0o600))
	t.file("f", "changed")
	for what, make := range makers {
		t.ok(unix.Unlink("d/last"))
		t.ok(make("d/last"), what)
		t.fails(unix.ENOSPC, make("new"), what)
		if what == "mkdir" {
			t.ok(unix.Rmdir("d/last"))
			t.files("d/last")
		}
	}
	t.ok(unix.Rename("f", "d/last"), "a replacement makes room too")
	t.files("f")
	t.ok(unix.Unlink("held"))
	t.fails(unix.ENOSPC, opening("new", unix.O_CREAT|unix.O_WRONLY), "a file that is open still counts")
	t.write(held, "x")
}

func readOnly(t *T) {
	t.equal("hello\n", t.read("f"))
	t.equal([]string{"d", "f", "fifo", "link"}, t.names("."))
	fd, dir := t.open("f", unix.O_RDONLY), t.open("d", unix.O_RDONLY)
	for what, err := range map[string]error{
		"write":       opening("f", unix.O_WRONLY),
		"append":      opening("f", unix.O_RDWR|unix.O_APPEND),
		"open":        opening("f", unix.O_RDONLY|unix.O_TRUNC),
		"create":      opening("new", unix.O_CREAT|unix.O_WRONLY),
		"exclusive":   opening("new", unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY),
		"mkdir":       unix.Mkdir("new", 0o755),
		"rmdir":       unix.Rmdir("d"),
		"unlink":      unix.Unlink("f"),
		"link":        unix.Link("f", "new"),
		"symlink":     unix.Symlink("f", "new"),
		"mkfifo":      unix.Mkfifo("new", 0o644),
		"rename":      unix.Rename("f", "new"),
		"exchange":    rename("f", "d", unix.RENAME_EXCHANGE),
		"chmod":       unix.Chmod("f", 0o600),
		"fchmod":      unix.Fchmod(fd, 0o600),
		"chown":       unix.Lchown("link", 1, 1),
		"fchown":      unix.Fchown(dir, 1, 1),
		"truncate":    unix.Truncate("f", 0),
		"times":       touch("f"),
		"futimens":    futimens(dir, nil),
		"setxattr":    unix.Setxattr("f", "user.x", nil, 0),
		"removexattr": unix.Removexattr("f", "user.x"),
		"access":      unix.Access("f", unix.W_OK),
	} {
		t.fails(unix.EROFS, err, what)
	}
	t.as(alice, func() {
		t.fails(unix.EROFS, opening("f", unix.O_WRONLY))
		t.fails(unix.EROFS, unix.Access("f", unix.W_OK))
		t.ok(unix.Access("f", unix.R_OK))
	})
	t.fails(unix.EEXIST, opening("f", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY))
	t.fails(unix.EEXIST, unix.Mkdir("d", 0o755))
	t.fails(unix.ENOENT, opening("none", unix.O_WRONLY))
	t.open("fifo", unix.O_RDWR) // no change of the file system
	t.ok(unix.Fsync(fd))
	var st unix.Statfs_t
	t.ok(unix.Statfs(".", &st))
	t.true(st.Flags&unix.ST_RDONLY != 0)
	t.equal("hello\n", t.read("f"))
}
