package conformance

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var nameCases = []Case{
	{Name: "names: any byte but / and NUL", Do: namesAnyByte},
	{Name: "names: 255 bytes, and not 256", Do: namesLength},
	{Name: "names: those that look like others", Do: namesAlike},
	{Name: "names: . and ..", Do: namesDots},
	{Name: "paths: 4095 bytes, and not 4096", Do: pathsLong},
	{Name: "paths: slashes at the end", Do: pathsTrailing},
	{Name: "paths: .. leads where the directory is now", Do: pathsUp},
	{Name: "paths: 40 symbolic links, and no more", Do: pathsLinks},
	{Name: "paths: more than 64 directories deep", Do: pathsDeep},
	{Name: "root: cannot be removed or renamed, and nothing goes in or out by link and rename", Do: rootOfMount},
	{Name: "a directory that something is mounted on is busy", Do: mountedOn},
	{Name: "root: the name .lockfs", Do: controlName},
}

// repeated is a text for a name or a part of it.
func repeated(text string, times int) string { return strings.Repeat(text, times) }

func namesAnyByte(t *T) {
	want := []string{}
	for b := 1; b < 256; b++ {
		if b == '/' {
			continue
		}
		name := string([]byte{byte(b)})
		if b == '.' {
			name = ".x"
		}
		want = append(want, name)
		t.files(name)
	}
	for _, name := range []string{"\xff\xfe", " ", "a b\nc", "-rf", "*", "\\", "ä", "a\u0308", "Ä", "~", "...", "..x", "#x#", "'\""} {
		if !slices.Contains(want, name) {
			want = append(want, name)
			t.files(name)
		}
	}
	slices.Sort(want)
	t.equal(want, t.names("."))
	for _, name := range want {
		t.ok(unix.Rename(name, name+"\xff\n"))
		t.ok(unix.Unlink(name+"\xff\n"), fmt.Sprintf("%q", name))
	}
}

func namesLength(t *T) {
	longest, tooLong := repeated("n", 255), repeated("n", 256)
	t.mkdir("d")
	t.files("f", longest)
	t.ok(unix.Rename(longest, "d/"+longest))
	t.ok(unix.Link("d/"+longest, longest))
	t.ok(unix.Symlink("x", "d/"+repeated("m", 255)))
	t.ok(unix.Mkdir(repeated("ä", 127), 0o755))
	for what, err := range map[string]error{
		"open":    opening(tooLong, unix.O_CREAT|unix.O_WRONLY),
		"mkdir":   unix.Mkdir(tooLong, 0o755),
		"symlink": unix.Symlink("x", tooLong),
		"link":    unix.Link("f", tooLong),
		"rename":  unix.Rename("f", tooLong),
		"from":    unix.Rename(tooLong, "x"),
		"mkfifo":  unix.Mkfifo(tooLong, 0o644),
		"unlink":  unix.Unlink(tooLong),
		"rmdir":   unix.Rmdir(tooLong),
		"stat":    unix.Stat(tooLong, new(unix.Stat_t)),
		"inside":  unix.Stat(tooLong+"/x", new(unix.Stat_t)),
		"chmod":   unix.Chmod(tooLong, 0),
		"access":  unix.Access(tooLong, unix.F_OK),
		"chdir":   unix.Chdir(tooLong),
	} {
		t.fails(unix.ENAMETOOLONG, err, what)
	}
}

func namesAlike(t *T) {
	for _, name := range []string{"name", "Name", "name ", "name.", "ａ", "a", "\u00e4", "a\u0308", "n\x01ame", "con", "x~1"} {
		t.file(name, name)
	}
	for _, name := range t.names(".") {
		t.equal(name, t.read(name))
	}
	t.equal(11, len(t.names(".")))
}

func namesDots(t *T) {
	t.mkdir("d", "d/sub")
	t.files("f")
	t.equal(t.lstat(".").Ino, t.lstat("d/..").Ino)
	t.equal(t.lstat("d").Ino, t.lstat("d/.").Ino)
	t.equal(t.lstat("d").Ino, t.lstat("d/sub/..").Ino)
	t.fails(unix.EINVAL, unix.Rmdir("d/."))
	t.fails(unix.ENOTEMPTY, unix.Rmdir("d/sub/.."))
	t.fails(unix.EEXIST, unix.Mkdir("d/.", 0o755))
	t.fails(unix.EEXIST, unix.Mkdir("d/..", 0o755))
	t.fails(unix.EEXIST, unix.Link("f", "d/."))
	t.fails(unix.EEXIST, unix.Symlink("f", ".."))
	t.fails(unix.EISDIR, unix.Unlink("d/."))
	t.fails(unix.EBUSY, unix.Rename("d/.", "e"))
	t.fails(unix.EBUSY, unix.Rename("d/sub", "d/.."))
}

func pathsLong(t *T) {
	part := repeated("p", 200)
	const most = 4096 // with the NUL
	var whole []string
	for len(whole)*201+201 < most {
		t.ok(unix.Mkdir(part, 0o755))
		t.ok(unix.Chdir(part))
		whole = append(whole, part)
	}
	t.files("f")
	t.ok(unix.Chdir(t.dir))
	path := strings.Join(whole, "/")
	path += repeated("/", most-1-len(path)-len("f")) + "f"
	t.equal(most-1, len(path))
	t.equal(int64(0), t.lstat(path).Size)
	t.fails(unix.ENAMETOOLONG, unix.Lstat("/"+path, new(unix.Stat_t)))
	t.fails(unix.ENAMETOOLONG, opening("./"+path, unix.O_RDONLY))
	t.fails(unix.ENAMETOOLONG, unix.Mkdir(path+"x", 0o755))
	target := repeated("t", most-1)
	t.ok(unix.Symlink(target, "link"))
	buffer := make([]byte, most)
	n, err := unix.Readlink("link", buffer)
	t.ok(err)
	t.equal(target, string(buffer[:n]))
	t.equal(int64(len(target)), t.lstat("link").Size)
	t.fails(unix.ENAMETOOLONG, unix.Stat("link", new(unix.Stat_t)))
	t.fails(unix.ENAMETOOLONG, unix.Symlink(target+"t", "link2"))
}

func pathsTrailing(t *T) {
	t.mkdir("d")
	t.files("f")
	t.ok(unix.Symlink("d", "dlink"))
	t.ok(unix.Symlink("f", "flink"))
	t.equal(t.lstat("d").Ino, t.lstat("d//").Ino)
	t.equal(t.lstat("d").Ino, t.lstat("dlink/").Ino)
	for what, err := range map[string]error{
		"stat":   unix.Lstat("f/", new(unix.Stat_t)),
		"link":   unix.Lstat("flink/", new(unix.Stat_t)),
		"unlink": unix.Unlink("f/"),
		"rename": unix.Rename("f/", "g"),
		"target": unix.Rename("f", "g/"),
		"chmod":  unix.Chmod("f/", 0o600),
		"rmdir":  unix.Rmdir("dlink/"),
		"times":  touch("f/"),
	} {
		t.fails(unix.ENOTDIR, err, what)
	}
	t.fails(unix.ENOENT, unix.Link("f", "g/"))
	t.fails(unix.ENOENT, unix.Symlink("f", "g/"))
	t.ok(unix.Mkdir("e/", 0o755))
	t.ok(unix.Rename("e/", "e2/"))
	t.ok(unix.Rmdir("e2/"))
	t.equal([]string{"d", "dlink", "f", "flink"}, t.names("."))
}

func pathsUp(t *T) {
	t.mkdir("a", "a/d", "b")
	t.files("a/in-a", "b/in-b")
	t.ok(unix.Chdir("a/d"))
	t.files("../also-in-a")
	t.ok(unix.Rename("../../a/d", "../../b/d"))
	t.equal([]string{"d", "in-b"}, t.names(".."))
	where := make([]byte, 4096)
	n, err := unix.Getcwd(where)
	t.ok(err)
	t.equal(t.path("b/d"), string(where[:n-1]))
	t.ok(unix.Rmdir("../d"))
	_, err = unix.Getcwd(where)
	t.fails(unix.ENOENT, err)
	t.fails(unix.ENOENT, opening("f", unix.O_CREAT|unix.O_WRONLY))
	t.fails(unix.ENOENT, unix.Mkdir("x", 0o755))
	t.equal(0, int(t.lstat(".").Nlink))
	t.ok(unix.Chdir(t.dir))
}

func pathsLinks(t *T) {
	t.file("link0", "hello")
	for i := range 41 {
		t.ok(unix.Symlink(fmt.Sprintf("link%d", i), fmt.Sprintf("link%d", i+1)))
	}
	t.equal("hello", t.read("link40"))
	t.fails(unix.ELOOP, opening("link41", unix.O_RDONLY))
	t.ok(unix.Symlink("b", "a"))
	t.ok(unix.Symlink("a", "b"))
	for what, err := range map[string]error{
		"open":     opening("a", unix.O_RDONLY),
		"stat":     unix.Stat("a", new(unix.Stat_t)),
		"chmod":    unix.Chmod("a", 0),
		"chown":    unix.Chown("a", 0, 0),
		"truncate": unix.Truncate("a", 0),
		"access":   unix.Access("a", unix.F_OK),
		"mkdir":    unix.Mkdir("a/x", 0o755),
		"unlink":   unix.Unlink("a/x"),
		"rename":   unix.Rename("a/x", "y"),
		"link":     unix.Link("a/x", "y"),
		"times":    touch("a"),
		"chdir":    unix.Chdir("a"),
	} {
		t.fails(unix.ELOOP, err, what)
	}
}

func pathsDeep(t *T) {
	const deepest = 64 // from the root; the case's directory is the first
	for range deepest - 1 {
		t.ok(unix.Mkdir("d", 0o755))
		t.ok(unix.Chdir("d"))
	}
	t.files("f")
	err := unix.Mkdir("d", 0o755)
	if t.Differs(Depth) {
		t.fails(unix.ENAMETOOLONG, err)
		t.ok(unix.Mkdir("../side", 0o755))
		t.ok(unix.Mkdir("../../down", 0o755))
		t.fails(unix.ENAMETOOLONG, unix.Rename("../../down", "down"), "by a rename neither")
		t.ok(unix.Chdir(t.dir))
		t.ok(unix.Mkdir("tree", 0o755))
		t.fails(unix.ENAMETOOLONG, unix.Rename("d", "tree/d"), "nor what is below")
	} else {
		t.ok(err)
	}
	t.ok(unix.Chdir(t.dir))
}

func rootOfMount(t *T) {
	root, outside := t.plan.Root, t.plan.Outside
	t.files("f")
	t.mkdir("d")
	t.fails(unix.EBUSY, unix.Rmdir(root))
	t.fails(unix.EBUSY, unix.Rename(root, root+"2"))
	t.fails(unix.EBUSY, unix.Rename("d", root+"/."))
	t.fails(unix.EXDEV, unix.Rename("d", root))
	t.fails(unix.EXDEV, unix.Rename("f", outside+"/f"))
	t.fails(unix.EXDEV, unix.Link("f", outside+"/f"))
	t.fails(unix.EXDEV, unix.Rename(outside, "g"))
	t.fails(unix.EINVAL, unix.Rename(t.dir, t.dir+"/d/x"))
	t.equal(t.lstat("..").Ino, t.lstat(root).Ino)
	t.equal(t.lstat(root).Dev, t.lstat("f").Dev)
}

func mountedOn(t *T) {
	t.mkdir("d", "e")
	t.ok(unix.Mount("none", t.path("d"), "tmpfs", 0, "size=4k"))
	t.cleanup(func() { _ = unix.Unmount(t.path("d"), unix.MNT_DETACH) })
	t.fails(unix.EBUSY, unix.Rmdir("d"))
	t.fails(unix.EBUSY, unix.Rename("d", "x"))
	t.fails(unix.EBUSY, unix.Rename("e", "d"))
	t.files("d/f")
	t.fails(unix.EXDEV, unix.Rename("d/f", "f"))
	t.ok(unix.Unmount(t.path("d"), 0))
	t.ok(unix.Rmdir("d"))
}

func controlName(t *T) {
	name := t.plan.Root + "/.lockfs"
	if !t.Differs(ControlName) {
		t.missing(name)
		return
	}
	t.equal(uint32(unix.S_IFDIR), t.lstat(name).Mode&unix.S_IFMT)
	t.fails(unix.EEXIST, unix.Mkdir(name, 0o755))
	t.fails(unix.EEXIST, opening(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY))
	t.fails(unix.EPERM, unix.Rmdir(name))
	t.fails(unix.EPERM, unix.Rename(name, t.plan.Root+"/other"))
	t.fails(unix.EPERM, opening(name+"/x", unix.O_CREAT|unix.O_WRONLY))
	for _, entry := range t.names(t.plan.Root) {
		t.true(entry != ".lockfs", "it is listed")
	}
	t.ok(unix.Mkdir(".lockfs", 0o755), "anywhere else it is a name as any")
	t.equal([]string{".lockfs"}, t.names("."))
}
