package namespace

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// openCreate is open(O_CREAT) without O_EXCL.
func openCreate(tr *driver, name string) step { return tr.do(here, createOp(RootIno, name, false)) }

func TestCreatedFile(t *testing.T) {
	tr := newDriver(t)
	result := tr.create(RootIno, "f", syscall.S_IFREG|0o444).ok()
	require.True(t, result.GetCreated())
	requireSame(t, &storepb.Attr{
		Ino: 2, Mode: syscall.S_IFREG | 0o444, Nlink: 1, Uid: 7, Gid: 8,
		Atime: tr.now, Mtime: tr.now, Ctime: tr.now, Btime: tr.now, Version: tr.index,
	}, result.GetAttr())
	require.Equal(t, tr.now, tr.attr(RootIno).GetMtime())
	tr.unlink(here, RootIno, "f").ok()
	require.EqualValues(t, 3, tr.file(RootIno, "f"), "a number is not used again")
}

func TestCreateOfNameThatIsThere(t *testing.T) {
	tr := newDriver(t)
	file := tr.file(RootIno, "file")
	tr.write(here, file, "held").ok()
	tr.mkdir(RootIno, "dir")
	tr.create(RootIno, "fifo", syscall.S_IFIFO|0o600).ok()
	tr.do(here, opOf(&storepb.Create{
		Parent: RootIno, Name: []byte("link"), Mode: syscall.S_IFLNK | 0o777, Target: []byte("file"),
	})).ok()
	for _, name := range []string{"file", "dir", "fifo", "link"} {
		for _, kind := range []uint32{syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFIFO} {
			tr.create(RootIno, name, kind|0o700).is(storepb.Code_EXISTS)
		}
	}
	tr.do(here, opOf(&storepb.Create{Parent: RootIno, Name: []byte("file"), Mode: someDir})).is(storepb.Code_EXISTS)

	openCreate(tr, "dir").is(storepb.Code_IS_DIRECTORY)
	openCreate(tr, "link").is(storepb.Code_STALE)
	openCreate(tr, "fifo").is(storepb.Code_STALE)
	require.Equal(t, "held", tr.content(file))
	before := tr.attr(file)
	require.False(t, openCreate(tr, "file").ok().GetCreated())
	requireSame(t, before, tr.attr(file))

	result := tr.write(here, file, "").ok() // the mount's O_TRUNC
	require.Zero(t, result.GetAttr().GetSize())
	require.Equal(t, []int64{tr.now, tr.now}, []int64{result.GetAttr().GetMtime(), result.GetAttr().GetCtime()})
	require.Equal(t, tr.index, result.GetAttr().GetVersion())
	require.Empty(t, tr.content(file))
}

// TestSetgidDirectory: what is made in it has its group, and directories its bit.
func TestSetgidDirectory(t *testing.T) {
	tr := newDriver(t)
	group := uint32(99)
	mode := uint32(0o2775)
	dir := tr.mkdir(RootIno, "shared")
	tr.do(here, opOf(&storepb.SetAttr{Ino: dir, Mode: &mode, Gid: &group})).ok()
	file := tr.attr(tr.file(dir, "f"))
	require.Equal(t, []uint32{group, someFile}, []uint32{file.GetGid(), file.GetMode()})
	sub := tr.attr(tr.mkdir(dir, "d"))
	require.Equal(t, []uint32{group, someDir | syscall.S_ISGID}, []uint32{sub.GetGid(), sub.GetMode()})
}

// TestStickyDirectory: who may remove is the kernel's business, the state does what it is told.
func TestStickyDirectory(t *testing.T) {
	tr := newDriver(t)
	require.NotZero(t, tr.attr(RootIno).GetMode()&syscall.S_ISVTX)
	tr.file(RootIno, "f")
	cmd := tr.next(there, opOf(&storepb.Unlink{Parent: RootIno, Name: []byte("f")}))
	cmd.Caller.Uid = 1000
	tr.apply(cmd).ok()
}

func TestNames(t *testing.T) {
	tr := newDriver(t)
	for name, code := range map[string]storepb.Code{
		"":                               storepb.Code_INVALID,
		".":                              storepb.Code_INVALID,
		"..":                             storepb.Code_INVALID,
		"a/b":                            storepb.Code_INVALID,
		"a\x00b":                         storepb.Code_INVALID,
		strings.Repeat("n", MaxName+1):   storepb.Code_NAME_TOO_LONG,
		strings.Repeat("n", MaxName):     storepb.Code_OK,
		"...":                            storepb.Code_OK,
		"\xff\xfe not UTF-8 \n":          storepb.Code_OK,
		strings.Repeat("\u00fc", 255/2):  storepb.Code_OK,
		" leading and trailing spaces  ": storepb.Code_OK,
	} {
		ino := tr.create(RootIno, name, someFile).is(code).GetAttr().GetIno()
		if code == storepb.Code_OK {
			require.Equal(t, ino, tr.at(RootIno, name))
			tr.rename(RootIno, name, RootIno, "to").ok()
			tr.rename(RootIno, "to", RootIno, name).ok()
		} else {
			tr.file(RootIno, "from")
			tr.rename(RootIno, "from", RootIno, name).is(code)
			tr.link(tr.at(RootIno, "from"), RootIno, name).is(code)
			tr.unlink(here, RootIno, "from").ok()
		}
	}
	restored(t, snapshotBytes(t, tr.ns.Snapshot()))
}

func TestRefusedTypes(t *testing.T) {
	tr := newDriver(t)
	for _, kind := range []uint32{syscall.S_IFCHR, syscall.S_IFBLK, 0, syscall.S_IFMT} {
		tr.create(RootIno, "dev", kind|0o600).is(storepb.Code_NOT_PERMITTED)
	}
	tr.create(RootIno, "sock", syscall.S_IFSOCK|0o600).ok()
	tr.create(RootIno, "link", syscall.S_IFLNK|0o777).is(storepb.Code_INVALID)
	tr.create(RootIno, "f", someFile|1<<16).is(storepb.Code_INVALID)
}

func TestLimits(t *testing.T) {
	tr := newDriver(t)
	file := tr.file(RootIno, "f")
	tr.write(here, file, strings.Repeat("x", MaxContent)).ok()
	tr.write(here, file, strings.Repeat("x", MaxContent+1)).is(storepb.Code_FILE_TOO_BIG)

	target := func(n int) step {
		return tr.do(here, opOf(&storepb.Create{
			Parent: RootIno, Name: []byte("link"), Mode: syscall.S_IFLNK, Target: []byte(strings.Repeat("t", n)),
		}))
	}
	target(MaxTarget + 1).is(storepb.Code_NAME_TOO_LONG)
	require.EqualValues(t, MaxTarget, target(MaxTarget).ok().GetAttr().GetSize())

	tr.do(here, opOf(&storepb.SetLimits{MaxInodes: 4, MaxInodesPerUser: 10})).ok()
	tr.mkdir(RootIno, "last")
	tr.create(RootIno, "more", someFile).is(storepb.Code_NO_SPACE)
	tr.link(file, RootIno, "name").ok()
	openCreate(tr, "f").ok()
	tr.do(here, opOf(&storepb.SetLimits{MaxInodes: 5})).ok()
	tr.file(RootIno, "more")
	tr.create(RootIno, "still more", someFile).is(storepb.Code_NO_SPACE)
	tr.unlink(here, RootIno, "more").ok()
	tr.file(RootIno, "instead")

	sessions := opOf(&storepb.SetLimits{MaxSessions: 2})
	tr.do(here, sessions).ok()
	tr.do(9, opOf(&storepb.OpenSession{})).is(storepb.Code_TOO_MANY_REQUESTS)
	tr.do(there, opOf(&storepb.OpenSession{BootId: "boot"})).ok()
}

func TestLinkLimit(t *testing.T) {
	tr := newDriver(t)
	tr.says = storepb.NameSays_SAYS_DATA
	ino := tr.file(RootIno, "f")
	in, _ := tr.ns.tree.inode(ids.Inode(ino))
	many := *in
	many.nlink = MaxLinks - 1
	tr.ns.tree.putInode(&many)
	require.EqualValues(t, MaxLinks, tr.link(ino, RootIno, "last").ok().GetAttr().GetNlink())
	tr.link(ino, RootIno, "more").is(storepb.Code_TOO_MANY_LINKS)
}

func TestXattrLimit(t *testing.T) {
	tr := newDriver(t)
	ino := tr.file(RootIno, "f")
	set := func(name string, size int) step {
		return tr.do(here, opOf(&storepb.SetXattr{Ino: ino, Name: []byte(name), Value: make([]byte, size)}))
	}
	set("user.a", MaxXattrs-len("user.a")+1).is(storepb.Code_NO_SPACE)
	set("user.a", MaxXattrs-len("user.a")).ok()
	set("user.b", 0).is(storepb.Code_NO_SPACE)
	set("user.a", 0).ok()
	set("user.b", MaxXattrs-len("user.auser.b")).ok()
	set("user.a", 1).is(storepb.Code_NO_SPACE)
	for _, name := range []string{"security.capability", "system.posix_acl_access", "trusted.x", "user"} {
		set(name, 1).is(storepb.Code_UNSUPPORTED)
	}
	require.Len(t, tr.ns.Query(xattrsOf(ino)).GetXattrs(), 2)
}

func TestExplicitTimesComeBack(t *testing.T) {
	tr := newDriver(t)
	for _, ino := range []uint64{tr.file(RootIno, "f"), tr.mkdir(RootIno, "d")} {
		for _, at := range []int64{0, -1, 1, tr.now + 1e18 + 123456789} {
			result := tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Atime: &at, Mtime: &at})).ok()
			require.Equal(t, []int64{at, at, tr.now},
				[]int64{result.GetAttr().GetAtime(), result.GetAttr().GetMtime(), result.GetAttr().GetCtime()})
		}
	}
}

func TestTimeNeverGoesBack(t *testing.T) {
	tr := newDriver(t)
	tr.file(RootIno, "f")
	latest := tr.now
	tr.wait(-1e12)
	require.Equal(t, latest, tr.attr(tr.file(RootIno, "g")).GetMtime())
}
