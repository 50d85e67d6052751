package conformance

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var xattrCases = []Case{
	{Name: "xattr: set, got, listed and removed", Do: xattrs},
	{Name: "xattr: sizes, and buffers that are too small", Do: xattrSizes},
	{Name: "xattr: XATTR_CREATE and XATTR_REPLACE", Do: xattrFlags},
	{Name: "xattr: errors", Do: xattrErrors},
	{Name: "xattr: permissions", Do: xattrPermissions},
	{Name: "xattr: more than a file can hold", Do: xattrTooMuch},
	{Name: "xattr: trusted, security and access control lists", Do: xattrOthers},
	{Name: "xattr: user.lockfs", Do: xattrOfLocks},
}

// attributes lists the users' attributes.
func (t *T) attributes(path string) []string {
	buffer := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buffer)
	t.ok(err)
	names := []string{}
	for _, name := range strings.Split(string(buffer[:n]), "\x00") {
		if strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.lockfs.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func xattrs(t *T) {
	t.files("f")
	t.mkdir("d")
	buffer := make([]byte, 100)
	for _, name := range []string{"f", "d"} {
		t.age(name)
		t.ok(unix.Setxattr(name, "user.b", []byte("one\x00two"), 0))
		t.true(t.lstat(name).Ctim.Sec > past.Sec)
		t.equal(past, t.lstat(name).Mtim)
		t.ok(unix.Setxattr(name, "user.a", nil, 0))
		t.equal([]string{"user.a", "user.b"}, t.attributes(name))
		n, err := unix.Getxattr(name, "user.b", buffer)
		t.ok(err)
		t.equal("one\x00two", string(buffer[:n]))
		n, err = unix.Getxattr(name, "user.a", buffer)
		t.ok(err)
		t.equal(0, n)
		t.ok(unix.Removexattr(name, "user.b"))
		_, err = unix.Getxattr(name, "user.b", buffer)
		t.fails(unix.ENODATA, err)
		t.equal([]string{"user.a"}, t.attributes(name))
	}
	fd := t.open("f", unix.O_RDONLY)
	t.ok(unix.Fsetxattr(fd, "user.c", []byte("x"), 0))
	n, err := unix.Fgetxattr(fd, "user.c", buffer)
	t.ok(err)
	t.equal(1, n)
	t.ok(unix.Fremovexattr(fd, "user.c"))
	t.ok(unix.Link("f", "g"))
	t.ok(unix.Rename("f", "h"))
	t.equal([]string{"user.a"}, t.attributes("g"), "they are the inode's")
	t.equal([]string{"user.a"}, t.attributes("h"))
}

func xattrSizes(t *T) {
	t.files("f")
	value := []byte(repeated("v", 1000))
	t.ok(unix.Setxattr("f", "user.x", value, 0))
	n, err := unix.Getxattr("f", "user.x", nil)
	t.ok(err)
	t.equal(len(value), n, "asked without a buffer")
	_, err = unix.Getxattr("f", "user.x", make([]byte, len(value)-1))
	t.fails(unix.ERANGE, err)
	n, err = unix.Getxattr("f", "user.x", make([]byte, len(value)))
	t.ok(err)
	t.equal(len(value), n)
	size, err := unix.Listxattr("f", nil)
	t.ok(err)
	_, err = unix.Listxattr("f", make([]byte, size-1))
	t.fails(unix.ERANGE, err)
	n, err = unix.Listxattr("f", make([]byte, size))
	t.ok(err)
	t.equal(size, n)
	longest := "user." + repeated("n", 250)
	t.ok(unix.Setxattr("f", longest, nil, 0))
	t.fails(unix.ERANGE, unix.Setxattr("f", longest+"n", nil, 0))
	t.fails(unix.E2BIG, unix.Setxattr("f", "user.big", make([]byte, 1<<16+1), 0))
}

func xattrFlags(t *T) {
	t.files("f")
	t.fails(unix.ENODATA, unix.Setxattr("f", "user.x", []byte("1"), unix.XATTR_REPLACE))
	t.ok(unix.Setxattr("f", "user.x", []byte("1"), unix.XATTR_CREATE))
	t.fails(unix.EEXIST, unix.Setxattr("f", "user.x", []byte("2"), unix.XATTR_CREATE))
	t.ok(unix.Setxattr("f", "user.x", []byte("3"), unix.XATTR_REPLACE))
	t.fails(unix.EINVAL, unix.Setxattr("f", "user.x", []byte("4"), 1<<5))
	buffer := make([]byte, 10)
	n, err := unix.Getxattr("f", "user.x", buffer)
	t.ok(err)
	t.equal("3", string(buffer[:n]))
}

func xattrErrors(t *T) {
	t.files("f")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Mkfifo("fifo", 0o644))
	t.fails(unix.ENOENT, unix.Setxattr("none", "user.x", nil, 0))
	t.fails(unix.ENOTDIR, unix.Setxattr("f/x", "user.x", nil, 0))
	t.fails(unix.EBADF, unix.Fsetxattr(-1, "user.x", nil, 0))
	t.fails(unix.EPERM, unix.Lsetxattr("link", "user.x", nil, 0))
	t.fails(unix.EPERM, unix.Setxattr("fifo", "user.x", nil, 0))
	t.fails(unix.ENODATA, unix.Removexattr("f", "user.x"))
	_, err := unix.Getxattr("f", "user.x", nil)
	t.fails(unix.ENODATA, err)
	_, err = unix.Lgetxattr("link", "user.x", nil)
	t.fails(unix.ENODATA, err)
	_, err = unix.Getxattr("f", "none.x", nil)
	t.fails(unix.EOPNOTSUPP, err)
	t.fails(unix.EOPNOTSUPP, unix.Setxattr("f", "none.x", nil, 0))
	t.fails(unix.EOPNOTSUPP, unix.Setxattr("f", "noprefix", nil, 0))
	t.fails(unix.ERANGE, unix.Setxattr("f", "", nil, 0))
	t.fails(unix.EINVAL, unix.Setxattr("f", "user.", nil, 0))
	t.equal([]string{}, t.attributes("link"))
	t.equal([]string{}, t.attributes("fifo"))
}

func xattrPermissions(t *T) {
	t.files("f")
	t.mkdir("sticky")
	t.ok(unix.Chmod("sticky", 0o1777))
	t.ok(unix.Setxattr("f", "user.x", []byte("1"), 0))
	t.as(alice, func() {
		_, err := unix.Getxattr("f", "user.x", nil)
		t.ok(err)
		t.fails(unix.EACCES, unix.Setxattr("f", "user.x", []byte("2"), 0))
		t.fails(unix.EACCES, unix.Removexattr("f", "user.x"))
		t.fails(unix.EPERM, unix.Setxattr("sticky", "user.x", nil, 0))
	})
	t.ok(unix.Chmod("f", 0o222))
	t.as(alice, func() {
		_, err := unix.Getxattr("f", "user.x", nil)
		t.fails(unix.EACCES, err)
		t.ok(unix.Setxattr("f", "user.x", []byte("2"), 0))
	})
}

func xattrTooMuch(t *T) {
	t.files("f")
	const name = "user.x"
	value := []byte(repeated("v", 4<<10-len(name)))
	if !t.Differs(SmallXattr) {
		t.ok(unix.Setxattr("f", name, value[:2000], 0))
		return
	}
	t.ok(unix.Setxattr("f", name, value, 0))
	t.fails(unix.ENOSPC, unix.Setxattr("f", "user.y", nil, 0))
	t.fails(unix.ENOSPC, unix.Setxattr("f", name, append(value, 'v'), 0))
	t.equal([]string{name}, t.attributes("f"))
}

func xattrOthers(t *T) {
	t.files("f")
	// POSIX ACL: version 2; owner rw, user 2001 r, group r, mask r, others none.
	list := []byte("\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\xd1\x07\x00\x00" +
		"\x04\x00\x04\x00\xff\xff\xff\xff" + "\x10\x00\x04\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")
	for name, value := range map[string][]byte{
		"trusted.x": []byte("1"), "security.x": []byte("1"), "system.posix_acl_access": list,
	} {
		err := unix.Setxattr("f", name, value, 0)
		if t.Differs(OnlyUserXattr) {
			t.fails(unix.EOPNOTSUPP, err, name)
			_, err = unix.Getxattr("f", name, nil)
			t.fails(unix.EOPNOTSUPP, err, name)
			t.fails(unix.EOPNOTSUPP, unix.Removexattr("f", name), name)
		} else {
			t.ok(err, name)
		}
	}
	buffer := make([]byte, 1000)
	n, err := unix.Listxattr("f", buffer)
	t.ok(err)
	t.equal(!t.plan.Lockfs, strings.Contains(string(buffer[:n]), "posix_acl"))
}

func xattrOfLocks(t *T) {
	t.open("f", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	buffer := make([]byte, 1000)
	n, err := unix.Listxattr("f", buffer)
	t.ok(err)
	_, getErr := unix.Getxattr("f", "user.lockfs.token", buffer[n:])
	setErr := unix.Setxattr("f", "user.lockfs.token", []byte("1"), 0)
	if t.Differs(LockXattr) {
		t.ok(getErr)
		t.ok(unix.Removexattr("f", "user.lockfs.token"))
		t.ok(unix.Removexattr("f", "user.lockfs.token"))
		_, getErr = unix.Getxattr("f", "user.lockfs.token", buffer)
		t.ok(getErr)
	} else {
		t.fails(unix.ENODATA, getErr)
	}
	t.equal(0, n)
	t.ok(setErr)
}
