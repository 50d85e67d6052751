package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var directoryCases = []Case{
	{Name: "mkdir: mode, owner, links and times", Do: mkdirs},
	{Name: "mkdir: errors", Do: mkdirErrors},
	{Name: "rmdir: links, times, and what is left open", Do: rmdirs},
	{Name: "rmdir: errors", Do: rmdirErrors},
	{Name: "getdents: names, numbers, kinds and dots", Do: listingEntries},
	{Name: "getdents: sees what came before, again after a rewind", Do: listingFresh},
	{Name: "getdents: errors and small buffers", Do: listingErrors},
	{Name: "seekdir: goes back to where telldir was", Do: listingSeeks},
	{Name: "seekdir: past entries that are gone", Do: listingSeeksGone},
	{Name: "chdir: errors", Do: chdirErrors},
	{Name: "a large directory: neither skips nor repeats while others come and go", Do: largeDirectory, Alone: true},
}

func mkdirs(t *T) {
	t.age(".")
	unix.Umask(0o022)
	before := t.lstat(".").Nlink
	t.ok(unix.Mkdir("d", 0o1777))
	unix.Umask(0)
	st := t.lstat("d")
	t.equal(uint32(unix.S_IFDIR|0o1755), st.Mode)
	t.equal(2, int(st.Nlink))
	t.equal(st.Mtim, st.Ctim)
	here := t.lstat(".")
	t.equal(before+1, here.Nlink, "its .. is a link")
	t.true(here.Mtim.Sec > past.Sec && here.Ctim.Sec > past.Sec)
	t.equal(past, here.Atim)
	t.as(alice, func() { t.ok(unix.Mkdir("alices", 0o700)) })
	t.equal(uint32(alice.id), t.lstat("alices").Uid)
	t.equal(uint32(alice.id), t.lstat("alices").Gid)
}

func mkdirErrors(t *T) {
	t.files("f")
	t.mkdir("d")
	t.ok(unix.Symlink("nowhere", "dangling"))
	for path, want := range map[string]unix.Errno{
		"f": unix.EEXIST, "d": unix.EEXIST, "dangling": unix.EEXIST, "f/x": unix.ENOTDIR, "none/x": unix.ENOENT,
		"": unix.ENOENT, "/": unix.EEXIST, "dangling/x": unix.ENOENT,
	} {
		t.fails(want, unix.Mkdir(path, 0o755), path)
	}
	t.ok(unix.Chmod("d", 0o755))
	t.as(alice, func() {
		t.fails(unix.EACCES, unix.Mkdir("d/x", 0o755))
		t.fails(unix.EEXIST, unix.Mkdir("d", 0o755), "what is there is told first")
	})
	t.fails(unix.ENOTDIR, unix.Mkdirat(t.open("f", unix.O_RDONLY), "x", 0o755))
	t.fails(unix.EBADF, unix.Mkdirat(-5, "x", 0o755))
}

func rmdirs(t *T) {
	before := t.lstat(".").Nlink
	t.mkdir("d", "d/sub")
	t.equal(3, int(t.lstat("d").Nlink))
	t.ok(unix.Rmdir("d/sub"))
	t.equal(2, int(t.lstat("d").Nlink))
	fd := t.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	t.age(".")
	t.ok(unix.Rmdir("d"))
	here := t.lstat(".")
	t.true(here.Mtim.Sec > past.Sec && here.Ctim.Sec > past.Sec)
	t.equal(before, here.Nlink)
	t.equal(0, int(t.fstat(fd).Nlink))
	_, err := unix.Getdents(fd, make([]byte, 4096))
	t.fails(unix.ENOENT, err)
	t.fails(unix.ENOENT, unix.Mkdirat(fd, "x", 0o755))
	t.ok(unix.Mkdir("d", 0o755))
	t.true(t.lstat("d").Ino != t.fstat(fd).Ino, "a new inode")
}

func rmdirErrors(t *T) {
	t.mkdir("full", "full/d", "dots")
	t.files("f", "dots/.hidden")
	t.ok(unix.Symlink("dots", "link"))
	for path, want := range map[string]unix.Errno{
		"none": unix.ENOENT, "f": unix.ENOTDIR, "link": unix.ENOTDIR, "full": unix.ENOTEMPTY, "dots": unix.ENOTEMPTY,
		"f/x": unix.ENOTDIR, "": unix.ENOENT, ".": unix.EINVAL,
	} {
		t.fails(want, unix.Rmdir(path), path)
	}
	t.ok(unix.Chmod("full", 0o755))
	t.as(alice, func() { t.fails(unix.EACCES, unix.Rmdir("full/d")) })
	t.ok(unix.Chmod("full", 0o1777))
	t.as(alice, func() { t.fails(unix.EPERM, unix.Rmdir("full/d")) })
}

func listingEntries(t *T) {
	t.mkdir("d", "d/sub")
	t.files("d/f")
	t.ok(unix.Symlink("x", "d/link"))
	t.ok(unix.Mkfifo("d/fifo", 0o644))
	t.ok(unix.Link("d/f", "d/f2"))
	list := t.listing(t.open("d", unix.O_RDONLY))
	kinds := make(map[string]byte)
	for _, e := range list {
		kinds[e.name] = e.kind
		t.equal(t.lstat("d/"+e.name).Ino, e.ino, e.name)
	}
	t.equal(len(list), len(kinds), "no name comes twice")
	t.equal(map[string]byte{
		".": unix.DT_DIR, "..": unix.DT_DIR, "sub": unix.DT_DIR, "f": unix.DT_REG, "f2": unix.DT_REG,
		"link": unix.DT_LNK, "fifo": unix.DT_FIFO,
	}, kinds)
}

func listingFresh(t *T) {
	fd := t.open(".", unix.O_RDONLY)
	t.files("first")
	t.true(contains(t.listing(fd), "first"), "made after the directory was opened")
	t.files("second")
	t.ok(unix.Unlink("first"))
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	t.ok(err)
	list := t.listing(fd)
	t.true(contains(list, "second") && !contains(list, "first"))
}

func contains(list []entry, name string) bool {
	return slices.ContainsFunc(list, func(e entry) bool { return e.name == name })
}

func listingErrors(t *T) {
	t.files("f", repeated("n", 255))
	_, err := unix.Getdents(t.open("f", unix.O_RDONLY), make([]byte, 4096))
	t.fails(unix.ENOTDIR, err)
	_, err = unix.Getdents(-1, make([]byte, 4096))
	t.fails(unix.EBADF, err)
	_, err = unix.Getdents(t.open(".", unix.O_PATH), make([]byte, 4096))
	t.fails(unix.EBADF, err)
	_, err = unix.Getdents(t.open(".", unix.O_RDONLY), make([]byte, 8))
	t.fails(unix.EINVAL, err)
	// A buffer for one entry at a time shows all of them.
	fd := t.open(".", unix.O_RDONLY)
	var names []string
	for list := t.entries(fd, 280); len(list) > 0; list = t.entries(fd, 280) {
		for _, e := range list {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	t.equal([]string{".", "..", "f", repeated("n", 255)}, names)
}

func listingSeeks(t *T) {
	for i := range 300 {
		t.files(fmt.Sprintf("name-%03d", i))
	}
	fd := t.open(".", unix.O_RDONLY)
	all := t.listing(fd)
	for _, at := range []int{1, 17, 150, len(all) - 2} {
		_, err := unix.Seek(fd, all[at].offset, unix.SEEK_SET)
		t.ok(err)
		t.equal(all[at+1:], t.listing(fd))
	}
	// Another descriptor has the same offsets.
	other := t.open(".", unix.O_RDONLY)
	_, err := unix.Seek(other, all[100].offset, unix.SEEK_SET)
	t.ok(err)
	t.equal(all[101:], t.listing(other))
}

func listingSeeksGone(t *T) {
	for i := range 40 {
		t.files(fmt.Sprintf("name-%03d", i))
	}
	fd := t.open(".", unix.O_RDONLY)
	all := t.listing(fd)
	gone := map[string]bool{}
	for _, e := range all[9:12] {
		if e.name != "." && e.name != ".." {
			gone[e.name] = true
			t.ok(unix.Unlink(e.name))
		}
	}
	_, err := unix.Seek(fd, all[10].offset, unix.SEEK_SET)
	t.ok(err)
	var want []entry
	for _, e := range all[11:] {
		if !gone[e.name] {
			want = append(want, e)
		}
	}
	t.equal(namesOf(want), namesOf(t.listing(fd)))
}

func namesOf(list []entry) (names []string) {
	for _, e := range list {
		names = append(names, e.name)
	}
	return names
}

func chdirErrors(t *T) {
	t.files("f")
	t.mkdir("closed")
	t.ok(unix.Chmod("closed", 0o600))
	t.fails(unix.ENOENT, unix.Chdir("none"))
	t.fails(unix.ENOTDIR, unix.Chdir("f"))
	t.fails(unix.ENOTDIR, unix.Fchdir(t.open("f", unix.O_RDONLY)))
	t.as(alice, func() { t.fails(unix.EACCES, unix.Chdir("closed")) })
}

// largeDirectory lists thousands of entries while other names come and go, through descriptors that pause in
// the middle. Each permanent name appears exactly once.
func largeDirectory(t *T) {
	entries := t.plan.Entries
	t.mkdir("d")
	dir := t.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	for i := range entries {
		t.ok(unix.Symlinkat("x", dir, fmt.Sprintf("stays-%06d", i)))
	}
	var done atomic.Bool
	var others sync.WaitGroup
	failed := make([]error, 2)
	for other := range failed {
		others.Go(func() {
			for i := 0; !done.Load() && failed[other] == nil; i++ {
				failed[other] = comeAndGo(dir, fmt.Sprintf("%d-%d", other, i))
			}
		})
	}
	defer func() {
		done.Store(true)
		others.Wait()
		for _, err := range failed {
			t.ok(err)
		}
	}()
	for _, size := range []int{1 << 10, 1 << 15, 1 << 20} {
		t.requireEach(entries, t.open("d", unix.O_RDONLY), size)
	}
}

// comeAndGo creates names, renames one and removes them.
func comeAndGo(dir int, name string) error {
	for _, err := range []error{
		unix.Symlinkat("x", dir, "comes-"+name),
		unix.Renameat(dir, "comes-"+name, dir, "goes-"+name),
		unix.Unlinkat(dir, "goes-"+name, 0),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *T) requireEach(entries, fd, size int) {
	seen := make(map[string]int)
	for list := t.entries(fd, size); len(list) > 0; list = t.entries(fd, size) {
		for _, e := range list {
			if strings.HasPrefix(e.name, "stays-") {
				seen[e.name]++
			}
		}
	}
	t.equal(entries, len(seen), "a name was skipped")
	for name, times := range seen {
		if times != 1 {
			t.equal(1, times, name)
		}
	}
}
