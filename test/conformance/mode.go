package conformance

import (
	"fmt"

	"golang.org/x/sys/unix"
)

var modeCases = []Case{
	{Name: "chmod: every bit, on files and directories, and the times", Do: chmods},
	{Name: "chmod: errors and who may", Do: chmodErrors},
	{Name: "chmod: set-group-ID is not for those outside the group", Do: chmodSetGID},
	{Name: "chown: owner and group, one without the other", Do: chowns},
	{Name: "chown: errors and who may", Do: chownErrors},
	{Name: "chown: takes set-user-ID and set-group-ID away", Do: chownDropsSetID},
	{Name: "access: as the real user, or the effective one", Do: accesses},
	{Name: "access: errors", Do: accessErrors},
	{Name: "sticky directory: only owners remove", Do: stickyDirectory},
	{Name: "set-group-ID directory: gives its group, and the bit to directories", Do: setGIDDirectory},
	{Name: "supplementary groups count", Do: supplementaryGroups},
	{Name: "a changed mode holds at once, but not for what is open", Do: modeHoldsAtOnce},
}

func chmods(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	for _, name := range []string{"f", "d"} {
		for _, mode := range []uint32{0, 0o777, 0o1000, 0o2000, 0o4000, 0o7777, 0o640} {
			t.age(name)
			t.ok(unix.Chmod(name, mode))
			t.equal(mode, t.permissions(name))
			t.equal(past, t.lstat(name).Mtim)
			t.true(t.lstat(name).Ctim.Sec > past.Sec)
		}
	}
	t.ok(unix.Chmod("link", 0o604))
	t.equal(uint32(0o604), t.permissions("f"))
	t.ok(unix.Fchmod(t.open("f", unix.O_RDONLY), 0o444))
	t.equal(uint32(0o444), t.permissions("f"))
	t.ok(unix.Fchmod(t.open("d", unix.O_RDONLY), 0o555))
	t.ok(unix.Fchmodat(unix.AT_FDCWD, "f", 0o400, unix.AT_SYMLINK_NOFOLLOW))
	t.equal(uint32(0o400), t.permissions("f"))
	t.fails(unix.EOPNOTSUPP, unix.Fchmodat(unix.AT_FDCWD, "link", 0o400, unix.AT_SYMLINK_NOFOLLOW))
}

func chmodErrors(t *T) {
	t.files("f")
	t.mkdir("closed")
	t.ok(unix.Chmod("closed", 0o700))
	t.fails(unix.ENOENT, unix.Chmod("none", 0))
	t.fails(unix.ENOENT, unix.Chmod("", 0))
	t.fails(unix.ENOTDIR, unix.Chmod("f/x", 0))
	t.fails(unix.EBADF, unix.Fchmod(-1, 0))
	t.ok(unix.Chmod("f", 0o666))
	t.as(alice, func() {
		t.fails(unix.EPERM, unix.Chmod("f", 0o666))
		t.fails(unix.EPERM, unix.Fchmod(t.open("f", unix.O_RDWR), 0o600))
		t.fails(unix.EACCES, unix.Chmod("closed/x", 0))
		t.files("mine")
		t.ok(unix.Chmod("mine", 0o600))
	})
	t.equal(uint32(0o666), t.permissions("f"))
}

func chmodSetGID(t *T) {
	t.as(alice, func() { t.files("f") })
	t.ok(unix.Chown("f", -1, eve.id))
	t.as(alice, func() { t.ok(unix.Chmod("f", 0o2755)) })
	t.equal(uint32(0o755), t.permissions("f"))
	t.ok(unix.Chown("f", -1, colleagues))
	t.as(alice, func() { t.ok(unix.Chmod("f", 0o2755)) })
	t.equal(uint32(0o2755), t.permissions("f"))
}

func chowns(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	owners := func(path string) string {
		st := t.lstat(path)
		return fmt.Sprintf("%d:%d", st.Uid, st.Gid)
	}
	for _, name := range []string{"f", "d"} {
		t.age(name)
		t.ok(unix.Chown(name, alice.id, colleagues))
		t.equal("2001:2100", owners(name))
		t.equal(past, t.lstat(name).Mtim)
		t.true(t.lstat(name).Ctim.Sec > past.Sec)
		t.ok(unix.Chown(name, bob.id, -1))
		t.equal("2002:2100", owners(name))
		t.ok(unix.Chown(name, -1, bob.id))
		t.equal("2002:2002", owners(name))
		t.ok(unix.Chown(name, -1, -1))
		t.equal("2002:2002", owners(name))
	}
	t.ok(unix.Chown("link", eve.id, 0))
	t.equal("2003:0", owners("f"))
	t.equal("0:0", owners("link"))
	t.ok(unix.Lchown("link", 1, 2))
	t.equal("1:2", owners("link"))
	t.ok(unix.Fchown(t.open("f", unix.O_RDONLY), 3, 4))
	t.equal("3:4", owners("f"))
	t.ok(unix.Fchownat(t.open("f", unix.O_PATH), "", 1<<31, 1<<32-2, unix.AT_EMPTY_PATH))
	t.equal("2147483648:4294967294", owners("f"))
}

func chownErrors(t *T) {
	t.files("f")
	t.as(alice, func() { t.files("mine") })
	t.fails(unix.ENOENT, unix.Chown("none", 0, 0))
	t.fails(unix.ENOTDIR, unix.Chown("f/x", 0, 0))
	t.fails(unix.EBADF, unix.Fchown(-1, 0, 0))
	t.as(alice, func() {
		t.fails(unix.EPERM, unix.Chown("f", alice.id, -1))
		t.fails(unix.EPERM, unix.Chown("f", -1, colleagues))
		t.fails(unix.EPERM, unix.Chown("mine", bob.id, -1))
		t.fails(unix.EPERM, unix.Chown("mine", -1, eve.id), "a group that she is not in")
		t.ok(unix.Chown("mine", -1, colleagues))
		t.ok(unix.Chown("mine", alice.id, -1))
	})
	t.equal(uint32(colleagues), t.lstat("mine").Gid)
}

func chownDropsSetID(t *T) {
	t.as(alice, func() { t.files("f", "g") })
	t.ok(unix.Chmod("f", 0o6777))
	t.ok(unix.Chmod("g", 0o2664)) // without the group's execute bit it means something else (chown(2))
	t.as(alice, func() {
		t.ok(unix.Chown("f", -1, colleagues))
		t.ok(unix.Chown("g", -1, colleagues))
	})
	t.equal(uint32(0o777), t.permissions("f"))
	t.equal(uint32(0o2664), t.permissions("g"))
	t.ok(unix.Chmod("f", 0o6777))
	t.ok(unix.Chown("f", bob.id, -1))
	t.equal(uint32(0o777), t.permissions("f"), "root's doing too")
}

func accesses(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Chown("f", alice.id, colleagues))
	t.ok(unix.Chmod("f", 0o640))
	t.ok(unix.Chmod("d", 0o750))
	allowed := func(path string, mode uint32) (answers string) {
		for _, flags := range []int{0, unix.AT_EACCESS} {
			switch err := unix.Faccessat(unix.AT_FDCWD, path, mode, flags); err {
			case nil:
				answers += "y"
			case unix.EACCES:
				answers += "n"
			default:
				t.ok(err)
			}
		}
		return answers
	}
	t.equal("yy", allowed("f", unix.R_OK|unix.W_OK))
	t.equal("nn", allowed("f", unix.X_OK), "root may not execute what nobody may")
	t.as(alice, func() { t.equal("yy", allowed("f", unix.R_OK|unix.W_OK)) })
	t.as(bob, func() {
		t.equal("yy", allowed("f", unix.R_OK))
		t.equal("nn", allowed("f", unix.R_OK|unix.W_OK))
	})
	t.as(eve, func() {
		t.equal("nn", allowed("f", unix.R_OK))
		t.equal("yy", allowed("f", unix.F_OK))
		t.equal("nn", allowed("d", unix.X_OK))
		t.equal("nn", allowed("d/none", unix.F_OK))
	})
	t.ok(setIDs(unix.SYS_SETRESGID, eve.id))
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(eve.id), 0, 0)
	t.equal(unix.Errno(0), errno)
	t.equal("ny", allowed("f", unix.R_OK), "eve in fact, root in effect")
	becomeRoot()
}

func accessErrors(t *T) {
	t.files("f")
	t.ok(unix.Symlink("nowhere", "dangling"))
	t.fails(unix.ENOENT, unix.Access("none", unix.F_OK))
	t.fails(unix.ENOENT, unix.Access("dangling", unix.F_OK))
	t.fails(unix.ENOENT, unix.Access("", unix.F_OK))
	t.fails(unix.ENOTDIR, unix.Access("f/x", unix.F_OK))
	t.fails(unix.EINVAL, unix.Access("f", 0o10))
	t.ok(unix.Faccessat(unix.AT_FDCWD, "dangling", unix.F_OK, unix.AT_SYMLINK_NOFOLLOW))
	t.ok(unix.Faccessat(t.open("f", unix.O_PATH), "", unix.R_OK, unix.AT_EMPTY_PATH))
}

func stickyDirectory(t *T) {
	t.mkdir("d")
	t.ok(unix.Chmod("d", 0o1777))
	t.as(alice, func() {
		t.files("d/f", "d/shared")
		t.ok(unix.Chmod("d/shared", 0o666))
		t.ok(unix.Mkdir("d/sub", 0o777))
		t.ok(unix.Symlink("f", "d/link"))
	})
	t.as(bob, func() {
		t.files("d/bobs")
		for _, name := range []string{"f", "shared", "link"} {
			t.fails(unix.EPERM, unix.Unlink("d/"+name), name)
			t.fails(unix.EPERM, unix.Rename("d/"+name, "d/x"), name)
			t.fails(unix.EPERM, unix.Rename("d/bobs", "d/"+name), name)
		}
		t.fails(unix.EPERM, unix.Rmdir("d/sub"))
		t.files("d/sub/bobs", "d/sub/bobs2")
		t.ok(unix.Unlink("d/sub/bobs"))
		t.ok(unix.Unlink("d/bobs"))
	})
	t.as(alice, func() {
		t.ok(unix.Unlink("d/sub/bobs2"), "that directory is not sticky")
		t.ok(unix.Rmdir("d/sub"))
		t.ok(unix.Unlink("d/f"))
		t.fails(unix.EPERM, unix.Chmod("d", 0o777))
	})
	t.ok(unix.Chown("d", bob.id, -1))
	t.as(bob, func() { t.ok(unix.Unlink("d/shared"), "the owner of the directory may") })
	t.ok(unix.Unlink("d/link"))
}

func setGIDDirectory(t *T) {
	t.mkdir("d")
	t.ok(unix.Chown("d", -1, colleagues))
	t.ok(unix.Chmod("d", 0o2777))
	t.as(eve, func() {
		t.files("d/f")
		t.ok(unix.Mkdir("d/sub", 0o755))
		t.ok(unix.Mkfifo("d/fifo", 0o644))
		t.ok(unix.Symlink("x", "d/link"))
		t.ok(unix.Mkdir("d/sub/sub", 0o700))
		t.create("d/set", unix.O_CREAT|unix.O_WRONLY, 0o2775)
	})
	for name, mode := range map[string]uint32{
		"f": 0o644, "fifo": 0o644, "sub": 0o2755, "sub/sub": 0o2700, "link": 0o777,
		"set": 0o775, // outside of the group, a user cannot set the set-group-ID bit
	} {
		st := t.lstat("d/" + name)
		t.equal(uint32(colleagues), st.Gid, name)
		t.equal(uint32(eve.id), st.Uid, name)
		t.equal(mode, t.permissions("d/"+name), name)
	}
	t.as(bob, func() { t.create("d/set", unix.O_CREAT|unix.O_WRONLY, 0o2775) })
	t.as(eve, func() {
		t.files("outside")
		t.ok(unix.Rename("outside", "d/outside"))
	})
	t.equal(uint32(eve.id), t.lstat("d/outside").Gid, "a rename keeps the group")
}

func supplementaryGroups(t *T) {
	t.mkdir("d")
	t.ok(unix.Chown("d", -1, colleagues))
	t.ok(unix.Chmod("d", 0o770))
	t.file("d/f", "hello")
	t.ok(unix.Chown("d/f", -1, colleagues))
	t.ok(unix.Chmod("d/f", 0o460))
	t.as(alice, func() {
		t.write(t.open("d/f", unix.O_RDWR), "H")
		t.ok(unix.Link("d/f", "d/g"))
		t.ok(unix.Unlink("d/f"))
		t.ok(touch("d/g"))
		t.fails(unix.EPERM, unix.Chmod("d/g", 0o666))
	})
	t.as(eve, func() { t.fails(unix.EACCES, unix.Lstat("d/g", new(unix.Stat_t))) })
	many := user{id: eve.id}
	for group := range 100 { // far more than a request can hold
		many.groups = append(many.groups, 3000+group)
	}
	many.groups = append(many.groups, colleagues)
	t.as(many, func() { t.equal("Hello", t.read("d/g")) })
}

func modeHoldsAtOnce(t *T) {
	t.file("f", "hello")
	t.ok(unix.Chmod("f", 0o666))
	var held int
	t.as(alice, func() { held = t.open("f", unix.O_RDWR) })
	t.ok(unix.Chmod("f", 0o600))
	t.as(alice, func() {
		t.fails(unix.EACCES, opening("f", unix.O_RDONLY))
		t.write(held, "H")
		t.equal("Hello", t.pread(held))
	})
	t.ok(unix.Chmod("f", 0o644))
	t.as(alice, func() { t.equal("Hello", t.read("f")) })
}
