package conformance

import (
	"math"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

var contentCases = []Case{
	{Name: "write: places, gaps and nothing", Do: writePlaces},
	{Name: "write: errors", Do: writeErrors},
	{Name: "write: times", Do: writeTimes},
	{Name: "write: vectors", Do: writeVectors},
	{Name: "write: flags of pwritev2", Do: writeFlags},
	{Name: "write: set-user-ID and set-group-ID go when another user writes", Do: writeDropsSetID},
	{Name: "write: beyond what a file can hold", Do: writeTooMuch},
	{Name: "write: beyond the limit of the process", Do: writeBeyondLimit, Alone: true},
	{Name: "read, write and others: buffers that are not there", Do: badBuffers},
	{Name: "read: places, and the end", Do: readPlaces},
	{Name: "read: errors", Do: readErrors},
	{Name: "read: leaves the times alone", Do: readTimes},
	{Name: "lseek: from start, place and end", Do: seekPlaces},
	{Name: "lseek: SEEK_DATA and SEEK_HOLE", Do: seekData},
	{Name: "lseek: errors", Do: seekErrors},
	{Name: "truncate: shorter, longer, and the times", Do: truncates},
	{Name: "truncate: errors", Do: truncateErrors},
	{Name: "truncate: permissions", Do: truncatePermissions},
	{Name: "fallocate: extends, or not", Do: fallocates},
	{Name: "fallocate: holes and zeros", Do: fallocateZeros},
	{Name: "fallocate: errors", Do: fallocateErrors},
	{Name: "fsync: of files, directories and others", Do: syncs},
	{Name: "dup and O_APPEND share one offset", Do: sharedOffset},
}

func writePlaces(t *T) {
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR)
	for _, step := range []struct {
		offset     int64
		data, want string
	}{
		{0, "hello", "hello"},
		{1, "a", "hallo"},
		{7, "x", "hallo\x00\x00x"},
		{100, "", "hallo\x00\x00x"},
	} {
		n, err := unix.Pwrite(fd, []byte(step.data), step.offset)
		t.ok(err)
		t.equal(len(step.data), n)
		t.equal(step.want, t.read("f"))
		t.equal(int64(len(step.want)), t.fstat(fd).Size)
	}
	t.write(fd, "H")
	t.write(fd, "A")
	t.equal("HAllo\x00\x00x", t.read("f"), "pwrite leaves the offset alone")
	blocks := t.fstat(fd).Blocks
	t.true(blocks > 0, "blocks of a file that holds something")
}

func writeErrors(t *T) {
	t.files("f")
	reader := t.open("f", unix.O_RDONLY)
	_, err := unix.Write(reader, []byte("x"))
	t.fails(unix.EBADF, err)
	_, err = unix.Pwrite(reader, []byte("x"), 0)
	t.fails(unix.EBADF, err)
	writer := t.open("f", unix.O_WRONLY)
	_, err = unix.Pwrite(writer, []byte("x"), -1)
	t.fails(unix.EINVAL, err)
	_, err = unix.Write(-1, []byte("x"))
	t.fails(unix.EBADF, err)
	t.equal("", t.read("f"))
}

func writeTimes(t *T) {
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR)
	t.age("f")
	_, err := unix.Write(fd, nil)
	t.ok(err)
	t.equal(past, t.lstat("f").Mtim, "nothing was written")
	t.write(fd, "x")
	st := t.lstat("f")
	t.equal(past, st.Atim)
	t.true(st.Mtim.Sec > past.Sec)
	t.equal(st.Mtim, st.Ctim)
	t.age("f")
	t.write(t.open("f", unix.O_WRONLY), "x")
	t.true(t.lstat("f").Mtim.Sec > past.Sec, "also with what it held before")
}

func writeVectors(t *T) {
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR)
	n, err := unix.Writev(fd, [][]byte{[]byte("one "), {}, []byte("two ")})
	t.ok(err)
	t.equal(8, n)
	n, err = unix.Pwritev(fd, [][]byte{[]byte("T"), []byte("W")}, 4)
	t.ok(err)
	t.equal(2, n)
	t.equal("one TWo ", t.read("f"))
	a, b := make([]byte, 3), make([]byte, 10)
	n, err = unix.Preadv(fd, [][]byte{a, b}, 1)
	t.ok(err)
	t.equal(7, n)
	t.equal("ne TWo ", string(a)+string(b[:4]))
	_, err = unix.Seek(fd, 0, unix.SEEK_SET)
	t.ok(err)
	n, err = unix.Readv(fd, [][]byte{a, b})
	t.ok(err)
	t.equal(8, n)
	_, err = unix.Pwritev(fd, [][]byte{[]byte("x")}, -1)
	t.fails(unix.EINVAL, err)
}

func writeFlags(t *T) {
	t.file("f", "one ")
	fd := t.open("f", unix.O_RDWR)
	for _, flags := range []int{unix.RWF_DSYNC, unix.RWF_SYNC, unix.RWF_HIPRI} {
		_, err := unix.Pwritev2(fd, [][]byte{[]byte("ONE")}, 0, flags)
		t.ok(err)
	}
	_, err := unix.Pwritev2(fd, [][]byte{[]byte("two")}, 0, unix.RWF_APPEND)
	t.ok(err)
	t.equal("ONE two", t.read("f"))
	_, err = unix.Pwritev2(fd, [][]byte{[]byte("x")}, 0, 1<<20)
	t.fails(unix.EOPNOTSUPP, err)

	const noAppend = 0x20 // RWF_NOAPPEND, Linux 6.9
	_, err = unix.Pwritev2(t.open("f", unix.O_WRONLY|unix.O_APPEND), [][]byte{[]byte("!!!")}, 0, noAppend)
	if t.Differs(AlwaysAppend); err == unix.EOPNOTSUPP {
		return
	}
	t.ok(err)
	if t.plan.Lockfs {
		t.equal("ONE two!!!", t.read("f"))
	} else {
		t.equal("!!! two", t.read("f"))
	}
}

func writeDropsSetID(t *T) {
	change := map[string]func(path string){
		"write": func(path string) {
			_, err := unix.Pwrite(t.open(path, unix.O_WRONLY), []byte("x"), 0)
			t.ok(err)
		},
		"append":    func(path string) { t.write(t.open(path, unix.O_WRONLY|unix.O_APPEND), "x") },
		"truncate":  func(path string) { t.ok(unix.Truncate(path, 1)) },
		"ftruncate": func(path string) { t.ok(unix.Ftruncate(t.open(path, unix.O_WRONLY), 1)) },
		"open":      func(path string) { t.open(path, unix.O_WRONLY|unix.O_TRUNC) },
		"fallocate": func(path string) { t.ok(unix.Fallocate(t.open(path, unix.O_WRONLY), 0, 0, 10)) },
	}
	for name, do := range change {
		t.file(name, "hello")
		t.ok(unix.Chmod(name, 0o6777))
		do(name)
		t.equal(uint32(0o6777), t.permissions(name), "root has done "+name)
		t.as(alice, func() { do(name) })
		t.equal(uint32(0o777), t.permissions(name), "alice has done "+name)
	}
}

const mostContent = 256 << 10

func writeTooMuch(t *T) {
	const offset = mostContent - 2
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR)
	_, err := unix.Pwrite(fd, []byte("xx"), offset)
	t.ok(err)
	appender := t.open("f", unix.O_WRONLY|unix.O_APPEND)
	n, err := unix.Pwrite(fd, []byte("yyy"), offset)
	_, appendErr := unix.Write(appender, []byte("z"))
	truncateErr := unix.Ftruncate(fd, mostContent+1)
	allocateErr := unix.Fallocate(fd, 0, 0, mostContent+1)
	if t.Differs(SmallFiles) {
		t.fails(unix.EFBIG, err)
		t.equal(-1, n)
		t.fails(unix.EFBIG, appendErr)
		t.fails(unix.EFBIG, truncateErr)
		t.fails(unix.EFBIG, unix.Truncate("f", mostContent+1))
		t.fails(unix.EFBIG, allocateErr)
		t.equal(strings.Repeat("\x00", offset)+"xx", t.read("f"))
	} else {
		for _, err := range []error{err, appendErr, truncateErr, allocateErr} {
			t.ok(err)
		}
	}
	// Beyond the limit of all file systems.
	_, err = unix.Pwrite(fd, []byte("xx"), math.MaxInt64-1)
	if err != unix.EINVAL { // some file systems report an overflow this way
		t.fails(unix.EFBIG, err)
	}
}

func writeBeyondLimit(t *T) {
	var before unix.Rlimit
	t.ok(unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	signal.Ignore(unix.SIGXFSZ)
	fd := t.open("f", unix.O_CREAT|unix.O_RDWR)
	t.ok(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 8, Max: before.Max}))
	t.cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &before) })
	n, err := unix.Write(fd, []byte("0123456789"))
	t.ok(err)
	t.equal(8, n, "as much as there is room for")
	_, err = unix.Write(fd, []byte("x"))
	t.fails(unix.EFBIG, err)
	t.fails(unix.EFBIG, unix.Ftruncate(fd, 9))
	t.fails(unix.EFBIG, unix.Truncate("f", 9))
	t.fails(unix.EFBIG, unix.Fallocate(fd, 0, 0, 9))
	t.equal("01234567", t.read("f"))
}

// badBuffers passes an unmapped address.
func badBuffers(t *T) {
	const nowhere, size = 1, 100
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	directory := t.open(".", unix.O_RDONLY)
	for what, call := range map[string][3]uintptr{
		"read":     {unix.SYS_READ, uintptr(fd), size},
		"write":    {unix.SYS_WRITE, uintptr(fd), size},
		"getdents": {unix.SYS_GETDENTS64, uintptr(directory), size},
		"fstat":    {unix.SYS_FSTAT, uintptr(fd), 0},
	} {
		_, _, errno := unix.Syscall(call[0], call[1], nowhere, call[2])
		t.fails(unix.EFAULT, errno, what)
	}
	t.equal("hello", t.read("f"))
}

func readPlaces(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDONLY)
	buffer := make([]byte, 3)
	for _, want := range []string{"hel", "lo", "", ""} {
		n, err := unix.Read(fd, buffer)
		t.ok(err)
		t.equal(want, string(buffer[:n]))
	}
	for offset, want := range map[int64]string{0: "hel", 3: "lo", 5: "", 6: "", 1 << 40: ""} {
		n, err := unix.Pread(fd, buffer, offset)
		t.ok(err)
		t.equal(want, string(buffer[:n]))
	}
	n, err := unix.Read(fd, nil)
	t.ok(err)
	t.equal(0, n)
}

func readErrors(t *T) {
	t.files("f")
	_, err := unix.Read(t.open("f", unix.O_WRONLY), make([]byte, 1))
	t.fails(unix.EBADF, err)
	_, err = unix.Pread(t.open("f", unix.O_RDONLY), make([]byte, 1), -1)
	t.fails(unix.EINVAL, err)
	_, err = unix.Read(-1, make([]byte, 1))
	t.fails(unix.EBADF, err)
}

func readTimes(t *T) {
	t.file("f", "hello")
	t.mkdir("d")
	t.ok(unix.Symlink("f", "link"))
	for _, name := range []string{"f", "d", "link"} {
		t.age(name)
	}
	t.read("f")
	t.names("d")
	_, err := unix.Readlink("link", make([]byte, 10))
	t.ok(err)
	t.read("link")
	for _, name := range []string{"f", "d", "link"} {
		t.equal(past, t.lstat(name).Atim, name)
		t.equal(past, t.lstat(name).Mtim, name)
	}
}

func seekPlaces(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	seek := func(offset int64, whence int, want int64) {
		got, err := unix.Seek(fd, offset, whence)
		t.ok(err)
		t.equal(want, got)
	}
	seek(2, unix.SEEK_SET, 2)
	seek(2, unix.SEEK_CUR, 4)
	seek(-1, unix.SEEK_END, 4)
	seek(10, unix.SEEK_END, 15)
	t.equal(int64(5), t.fstat(fd).Size, "seeking does not extend")
	t.write(fd, "x")
	t.equal("hello"+strings.Repeat("\x00", 10)+"x", t.read("f"))
	t.write(t.open("f", unix.O_WRONLY|unix.O_APPEND), "yy")
	seek(0, unix.SEEK_END, 18)
}

func seekData(t *T) {
	t.file("f", "hello")
	t.files("empty")
	fd := t.open("f", unix.O_RDONLY)
	for _, row := range []struct {
		offset int64
		whence int
		want   int64
	}{
		{0, unix.SEEK_DATA, 0}, {3, unix.SEEK_DATA, 3}, {0, unix.SEEK_HOLE, 5}, {4, unix.SEEK_HOLE, 5},
	} {
		got, err := unix.Seek(fd, row.offset, row.whence)
		t.ok(err)
		t.equal(row.want, got)
	}
	empty := t.open("empty", unix.O_RDONLY)
	for _, whence := range []int{unix.SEEK_DATA, unix.SEEK_HOLE} {
		_, err := unix.Seek(fd, 5, whence)
		t.fails(unix.ENXIO, err)
		_, err = unix.Seek(empty, 0, whence)
		t.fails(unix.ENXIO, err)
		_, err = unix.Seek(fd, -1, whence)
		t.fails(unix.ENXIO, err)
	}
}

func seekErrors(t *T) {
	t.files("f")
	fd := t.open("f", unix.O_RDONLY)
	_, err := unix.Seek(fd, -1, unix.SEEK_SET)
	t.fails(unix.EINVAL, err)
	_, err = unix.Seek(fd, -1, unix.SEEK_CUR)
	t.fails(unix.EINVAL, err)
	_, err = unix.Seek(fd, 0, 17)
	t.fails(unix.EINVAL, err)
	_, err = unix.Seek(-1, 0, unix.SEEK_SET)
	t.fails(unix.EBADF, err)
	t.ok(unix.Mkfifo("fifo", 0o644))
	_, err = unix.Seek(t.open("fifo", unix.O_RDWR), 0, unix.SEEK_SET)
	t.fails(unix.ESPIPE, err)
}

func truncates(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	for _, cut := range []func(size int64) error{
		func(size int64) error { return unix.Truncate("f", size) },
		func(size int64) error { return unix.Ftruncate(fd, size) },
	} {
		t.age("f")
		t.ok(cut(2))
		t.equal("he", t.read("f"))
		st := t.lstat("f")
		t.equal(past, st.Atim)
		t.true(st.Mtim.Sec > past.Sec && st.Ctim.Sec > past.Sec)
		t.ok(cut(4))
		t.equal("he\x00\x00", t.read("f"))
		t.ok(cut(0))
		t.equal("", t.read("f"))
		t.file("f", "hello")
	}
	place, err := unix.Seek(fd, 0, unix.SEEK_CUR)
	t.ok(err)
	t.equal(int64(0), place, "the offset stays")
	t.ok(unix.Symlink("f", "link"))
	t.ok(unix.Truncate("link", 1))
	t.equal("h", t.read("f"))
}

func truncateErrors(t *T) {
	t.file("f", "hello")
	t.mkdir("d")
	t.ok(unix.Mkfifo("fifo", 0o644))
	t.ok(unix.Symlink("self", "self"))
	for path, want := range map[string]unix.Errno{
		"none": unix.ENOENT, "f/x": unix.ENOTDIR, "d": unix.EISDIR, "fifo": unix.EINVAL, "self": unix.ELOOP,
		repeated("n", 256): unix.ENAMETOOLONG, "": unix.ENOENT,
	} {
		t.fails(want, unix.Truncate(path, 0), path)
	}
	t.fails(unix.EINVAL, unix.Truncate("f", -1))
	t.fails(unix.EINVAL, unix.Ftruncate(t.open("f", unix.O_RDWR), -1))
	t.fails(unix.EINVAL, unix.Ftruncate(t.open("f", unix.O_RDONLY), 0))
	t.fails(unix.EBADF, unix.Ftruncate(-1, 0))
	t.equal("hello", t.read("f"))
}

func truncatePermissions(t *T) {
	t.file("f", "hello")
	writer := t.open("f", unix.O_WRONLY)
	t.mkdir("closed")
	t.ok(unix.Chmod("closed", 0o700))
	t.as(alice, func() {
		t.fails(unix.EACCES, unix.Truncate("f", 0))
		t.fails(unix.EACCES, unix.Truncate("closed/none", 0))
		t.ok(unix.Ftruncate(writer, 4), "the descriptor may write")
	})
	t.equal("hell", t.read("f"))
}

func fallocates(t *T) {
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	t.ok(unix.Fallocate(fd, 0, 0, 3))
	t.equal("hello", t.read("f"))
	t.ok(unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 100))
	t.equal("hello", t.read("f"))
	t.ok(unix.Fallocate(fd, 0, 4, 3))
	t.equal("hello\x00\x00", t.read("f"))
}

func fallocateZeros(t *T) {
	const punch = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	t.file("f", "hello")
	fd := t.open("f", unix.O_RDWR)
	t.ok(unix.Fallocate(fd, punch, 1, 2))
	t.equal("h\x00\x00lo", t.read("f"))
	t.ok(unix.Fallocate(fd, punch, 4, 10))
	t.equal("h\x00\x00l\x00", t.read("f"))
	t.ok(unix.Fallocate(fd, punch, 10, 10))
	t.equal("h\x00\x00l\x00", t.read("f"))
	t.fails(unix.EOPNOTSUPP, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE, 0, 1))
	if err := unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 3, 3); err != unix.EOPNOTSUPP { // tmpfs lacks it
		t.ok(err)
		t.equal("h"+repeated("\x00", 5), t.read("f"))
	}
}

func fallocateErrors(t *T) {
	t.files("f")
	fd := t.open("f", unix.O_RDWR)
	t.fails(unix.EINVAL, unix.Fallocate(fd, 0, 0, 0))
	t.fails(unix.EINVAL, unix.Fallocate(fd, 0, -1, 1))
	t.fails(unix.EINVAL, unix.Fallocate(fd, 0, 0, -1))
	t.fails(unix.EFBIG, unix.Fallocate(fd, 0, math.MaxInt64, 1))
	t.fails(unix.EOPNOTSUPP, unix.Fallocate(fd, 1<<20, 0, 1))
	t.fails(unix.EBADF, unix.Fallocate(t.open("f", unix.O_RDONLY), 0, 0, 1))
	t.fails(unix.EBADF, unix.Fallocate(-1, 0, 0, 1))
	t.ok(unix.Mkfifo("fifo", 0o644))
	t.fails(unix.ESPIPE, unix.Fallocate(t.open("fifo", unix.O_RDWR), 0, 0, 1))
	t.equal("", t.read("f"))
}

func syncs(t *T) {
	t.file("f", "hello")
	t.ok(unix.Mkfifo("fifo", 0o644))
	for _, path := range []string{"f", "."} {
		fd := t.open(path, unix.O_RDONLY)
		t.ok(unix.Fsync(fd))
		t.ok(unix.Fdatasync(fd))
		t.ok(unix.Syncfs(fd))
	}
	t.ok(unix.SyncFileRange(t.open("f", unix.O_RDWR), 0, 5, unix.SYNC_FILE_RANGE_WRITE))
	t.ok(unix.Fadvise(t.open("f", unix.O_RDONLY), 0, 0, unix.FADV_DONTNEED))
	t.fails(unix.EINVAL, unix.Fsync(t.open("fifo", unix.O_RDWR)))
	t.fails(unix.EBADF, unix.Fsync(-1))
}

func sharedOffset(t *T) {
	first := t.open("f", unix.O_CREAT|unix.O_RDWR)
	second, err := unix.Dup(first)
	t.ok(err)
	t.cleanup(func() { _ = unix.Close(second) })
	t.write(first, "one ")
	t.write(second, "two ")
	t.write(first, "three")
	t.equal("one two three", t.read("f"))
	_, err = unix.FcntlInt(uintptr(second), unix.F_SETFL, unix.O_APPEND)
	t.ok(err)
	_, err = unix.Seek(first, 0, unix.SEEK_SET)
	t.ok(err)
	t.write(first, "!")
	t.equal("one two three!", t.read("f"))
}
