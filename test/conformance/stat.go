package conformance

import (
	"math"

	"golang.org/x/sys/unix"
)

var statCases = []Case{
	{Name: "stat: agrees with lstat, fstat and statx", Do: stats},
	{Name: "stat: errors", Do: statErrors},
	{Name: "statx: the time of birth", Do: statxBirth},
	{Name: "statfs: what there is", Do: statfs},
	{Name: "times: come back to the nanosecond, on whatever they are set", Do: timesExact},
	{Name: "times: UTIME_NOW and UTIME_OMIT", Do: timesNowAndOmit},
	{Name: "times: before 1970, far away and to come", Do: timesFar},
	{Name: "times: all from one clock", Do: timesOneClock},
	{Name: "times: owners set them, writers only to now", Do: timesPermissions},
	{Name: "times: errors", Do: timesErrors},
}

func stats(t *T) {
	t.file("f", "hello")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Mkfifo("fifo", 0o644))
	for _, name := range []string{"f", "d", "fifo"} {
		st := t.stat(name)
		t.equal(st, t.lstat(name))
		t.equal(st, t.fstat(t.open(name, unix.O_RDONLY|unix.O_NONBLOCK)))
		t.equal(st, t.fstat(t.open(name, unix.O_PATH)))
		var x unix.Statx_t
		t.ok(unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &x))
		t.equal(uint32(unix.STATX_BASIC_STATS), x.Mask&unix.STATX_BASIC_STATS)
		t.equal(st.Ino, x.Ino)
		t.equal(st.Mode, uint32(x.Mode))
		t.equal(int(st.Nlink), int(x.Nlink))
		t.equal(st.Size, int64(x.Size))
		t.equal(st.Blocks, int64(x.Blocks))
		t.equal(st.Mtim, unix.Timespec{Sec: x.Mtime.Sec, Nsec: int64(x.Mtime.Nsec)})
		t.equal(st.Ctim, unix.Timespec{Sec: x.Ctime.Sec, Nsec: int64(x.Ctime.Nsec)})
		t.equal(st.Dev, unix.Mkdev(x.Dev_major, x.Dev_minor))
	}
	t.equal(t.stat("f"), t.stat("link"))
	t.equal(int64(1), t.lstat("link").Size)
	t.true(t.lstat("link").Ino != t.lstat("f").Ino)
	t.true(t.lstat("f").Blksize > 0)
}

func statErrors(t *T) {
	t.files("f")
	t.mkdir("closed")
	t.files("closed/f")
	t.ok(unix.Chmod("closed", 0o600))
	t.ok(unix.Symlink("nowhere", "dangling"))
	st := new(unix.Stat_t)
	t.fails(unix.ENOENT, unix.Stat("none", st))
	t.fails(unix.ENOENT, unix.Stat("dangling", st))
	t.fails(unix.ENOENT, unix.Stat("", st))
	t.fails(unix.ENOTDIR, unix.Stat("f/x", st))
	t.fails(unix.EBADF, unix.Fstat(-1, st))
	t.fails(unix.EINVAL, unix.Fstatat(unix.AT_FDCWD, "f", st, 1<<20))
	t.ok(unix.Fstatat(t.open("f", unix.O_PATH), "", st, unix.AT_EMPTY_PATH))
	t.as(alice, func() { t.fails(unix.EACCES, unix.Stat("closed/f", st)) })
	t.fails(unix.EINVAL, unix.Statx(unix.AT_FDCWD, "f", 0, 1<<31, new(unix.Statx_t)))
}

func statxBirth(t *T) {
	birth := func(path string) unix.StatxTimestamp {
		var x unix.Statx_t
		t.ok(unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &x))
		t.true(x.Mask&unix.STATX_BTIME != 0)
		return x.Btime
	}
	t.mkdir("d")
	t.files("f")
	t.ok(unix.Symlink("f", "link"))
	for _, name := range []string{"d", "f", "link"} {
		born, st := birth(name), t.lstat(name)
		t.equal(st.Mtim, unix.Timespec{Sec: born.Sec, Nsec: int64(born.Nsec)}, name)
		t.age(name)
		t.ok(unix.Lchown(name, 1, 1))
		t.ok(unix.Rename(name, name+"2"))
		t.equal(born, birth(name+"2"), name)
	}
	t.ok(unix.Unlink("f2"))
	t.files("f2")
	t.true(birth("f2").Sec > past.Sec)
}

func statfs(t *T) {
	t.file("f", "hello")
	var byPath, byFd unix.Statfs_t
	t.ok(unix.Statfs("f", &byPath))
	t.ok(unix.Fstatfs(t.open("f", unix.O_RDONLY), &byFd))
	t.equal(byPath.Type, byFd.Type)
	t.equal(byPath.Fsid, byFd.Fsid)
	t.equal(int64(255), byPath.Namelen)
	t.true(byPath.Bsize > 0 && byPath.Frsize > 0)
	t.true(byPath.Blocks >= byPath.Bfree && byPath.Bfree >= byPath.Bavail && byPath.Bavail > 0, byPath)
	t.true(byPath.Files > byPath.Ffree && byPath.Ffree > 0, byPath)
	t.fails(unix.ENOENT, unix.Statfs("none", &byPath))
	t.fails(unix.ENOTDIR, unix.Statfs("f/x", &byPath))
	t.fails(unix.EBADF, unix.Fstatfs(-1, &byPath))
}

func setTimes(path string, access, modification unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{access, modification}, unix.AT_SYMLINK_NOFOLLOW)
}

func timesExact(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Mkfifo("fifo", 0o644))
	access, modification := unix.Timespec{Sec: 1_234_567_890, Nsec: 1}, unix.Timespec{Sec: 1_700_000_000, Nsec: 999_999_999}
	for _, name := range []string{"f", "d", "link", "fifo"} {
		t.ok(setTimes(name, access, modification))
		st := t.lstat(name)
		t.equal(access, st.Atim, name)
		t.equal(modification, st.Mtim, name)
		t.true(st.Ctim.Sec > modification.Sec, name)
	}
	fd := t.open("f", unix.O_RDONLY)
	t.ok(futimens(fd, &[2]unix.Timespec{modification, access}))
	t.equal(access, t.fstat(fd).Mtim)
	t.ok(futimens(t.open("d", unix.O_RDONLY), &[2]unix.Timespec{modification, access}))
	t.equal(access, t.lstat("d").Mtim)
	t.ok(unix.UtimesNanoAt(unix.AT_FDCWD, "link", []unix.Timespec{past, past}, 0))
	t.equal(past, t.lstat("f").Mtim, "through the link")
	t.equal(modification, t.lstat("link").Mtim)
	t.ok(unix.Utimes("f", []unix.Timeval{{Sec: 5, Usec: 6}, {Sec: 7, Usec: 8}}))
	t.equal(unix.Timespec{Sec: 7, Nsec: 8000}, t.lstat("f").Mtim)
}

func timesNowAndOmit(t *T) {
	now, omit := unix.Timespec{Nsec: unix.UTIME_NOW}, unix.Timespec{Nsec: unix.UTIME_OMIT}
	t.files("f")
	t.age("f")
	t.ok(setTimes("f", omit, now))
	st := t.lstat("f")
	t.equal(past, st.Atim)
	t.true(st.Mtim.Sec > past.Sec)
	t.age("f")
	t.ok(setTimes("f", now, omit))
	st = t.lstat("f")
	t.equal(past, st.Mtim)
	t.true(st.Atim.Sec > past.Sec)
	t.age("f")
	t.ok(setTimes("f", omit, omit))
	t.equal(past, t.lstat("f").Mtim)
	t.ok(setTimes("f", now, now))
	st = t.lstat("f")
	t.equal(st.Atim, st.Mtim)
	t.equal(st.Ctim, st.Mtim)
	t.age("f")
	t.ok(touch("f"))
	st = t.lstat("f")
	t.equal(st.Atim, st.Mtim)
	t.equal(st.Ctim, st.Mtim)
	t.true(st.Mtim.Sec > past.Sec)
}

func timesFar(t *T) {
	t.files("f")
	for _, at := range []unix.Timespec{{}, {Sec: -1, Nsec: 999_999_999}, {Sec: -86400, Nsec: 1}, {Sec: 4_102_444_800, Nsec: 7}} {
		t.ok(setTimes("f", at, at))
		t.equal(at, t.lstat("f").Mtim)
		t.equal(at, t.lstat("f").Atim)
	}
	farthest := unix.Timespec{Sec: 1 << 33, Nsec: 5} // 2242
	t.ok(setTimes("f", farthest, farthest))
	t.equal(farthest, t.lstat("f").Mtim)
	beyond := unix.Timespec{Sec: 12_000_000_000} // 2350, which ext4 supports
	t.ok(setTimes("f", beyond, beyond))
	if t.Differs(YearsAround) {
		t.equal(unix.NsecToTimespec(math.MaxInt64), t.lstat("f").Mtim)
	} else {
		t.equal(beyond, t.lstat("f").Mtim)
	}
}

// timesOneClock imitates programs that compare a lock's time with that of a new file.
func timesOneClock(t *T) {
	t.files("lock")
	st := t.lstat("lock")
	last := st.Mtim.Nano()
	fd := t.open("f", unix.O_CREAT|unix.O_WRONLY)
	for _, step := range []func(){
		func() { t.files("new") }, func() { t.mkdir("d") }, func() { t.write(fd, "x") }, func() { t.ok(touch("f")) },
		func() { t.ok(unix.Symlink("x", "link")) }, func() { t.ok(unix.Truncate("f", 0)) },
	} {
		step()
		var now int64
		for _, name := range []string{"f", "new", "d", "link"} {
			var st unix.Stat_t
			if unix.Lstat(name, &st) == nil {
				now = max(now, st.Mtim.Nano())
			}
		}
		t.true(now >= last, "time went back")
		last = now
	}
}

func timesPermissions(t *T) {
	t.files("f", "readable")
	t.ok(unix.Chmod("f", 0o666))
	now, omit := unix.Timespec{Nsec: unix.UTIME_NOW}, unix.Timespec{Nsec: unix.UTIME_OMIT}
	t.as(alice, func() {
		t.ok(touch("f"), "she may write")
		t.ok(setTimes("f", now, now))
		t.fails(unix.EPERM, setTimes("f", past, past))
		t.fails(unix.EPERM, setTimes("f", now, past))
		t.fails(unix.EPERM, setTimes("f", now, omit))
		t.ok(setTimes("f", omit, omit))
		t.fails(unix.EACCES, touch("readable"))
		t.fails(unix.EACCES, setTimes("readable", now, now))
		t.fails(unix.EPERM, setTimes("readable", past, past))
		t.files("mine")
		t.ok(unix.Chmod("mine", 0o400))
		t.ok(touch("mine"))
		t.ok(setTimes("mine", past, past))
		t.ok(setTimes("mine", omit, now))
	})
}

func timesErrors(t *T) {
	t.files("f")
	bad := unix.Timespec{Nsec: 1_000_000_000}
	t.fails(unix.EINVAL, setTimes("f", bad, bad))
	t.fails(unix.EINVAL, setTimes("f", unix.Timespec{Nsec: -5}, past))
	t.fails(unix.ENOENT, setTimes("none", past, past))
	t.fails(unix.ENOTDIR, setTimes("f/x", past, past))
	t.fails(unix.EBADF, futimens(-1, nil))
	t.fails(unix.EINVAL, unix.UtimesNanoAt(unix.AT_FDCWD, "f", []unix.Timespec{past, past}, 1<<20))
}
