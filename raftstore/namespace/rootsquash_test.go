package namespace

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/storepb"
)

// deed is a system call of somebody who is nobody.
type deed struct {
	call, at, to string // paths below the root of a tree
	mode, id     uint32
}

// squashNode is what a tree has before a deed.
type squashNode struct {
	path     string
	mode     uint32
	uid, gid uint32
}

var squashErrnos = map[storepb.Code]syscall.Errno{
	storepb.Code_OK: 0, storepb.Code_NO_ACCESS: syscall.EACCES, storepb.Code_NOT_PERMITTED: syscall.EPERM, storepb.Code_NOT_FOUND: syscall.ENOENT,
	storepb.Code_EXISTS: syscall.EEXIST, storepb.Code_NOT_EMPTY: syscall.ENOTEMPTY, storepb.Code_IS_DIRECTORY: syscall.EISDIR,
	storepb.Code_NOT_DIRECTORY: syscall.ENOTDIR, storepb.Code_INVALID: syscall.EINVAL,
}

// TestSquashedRootIsNobody: as a table, and where this test may become nobody a local disk agrees with it.
func TestSquashedRootIsNobody(t *testing.T) {
	const none, access, perm = syscall.Errno(0), syscall.EACCES, syscall.EPERM
	tree := []squashNode{
		{"open", syscall.S_IFDIR | 0o777, 0, 0}, {"open/other", syscall.S_IFREG | 0o644, 7, 8}, {"open/mine", syscall.S_IFREG | 0o600, Nobody, Nobody},
		{"open/free", syscall.S_IFREG | 0o666, 7, 8}, {"open/suid", syscall.S_IFREG | 0o4777, 7, 8}, {"open/dir", syscall.S_IFDIR | 0o755, 7, 8},
		{"open/group", syscall.S_IFREG | 0o060, 7, Nobody}, {"open/notgroup", syscall.S_IFREG | 0o606, 7, Nobody}, {"open/away", syscall.S_IFDIR | 0o777, 7, 8},
		{"sticky", syscall.S_IFDIR | 0o1777, 0, 0}, {"sticky/other", syscall.S_IFREG | 0o666, 7, 8}, {"sticky/mine", syscall.S_IFREG | 0o644, Nobody, 8},
		{"sticky/dir", syscall.S_IFDIR | 0o777, 7, 8},
		{"shut", syscall.S_IFDIR | 0o755, 7, 8}, {"shut/free", syscall.S_IFREG | 0o666, 7, 8}, {"shut/mine", syscall.S_IFREG | 0o644, Nobody, 8},
		{"private", syscall.S_IFDIR | 0o700, 7, 8}, {"private/free", syscall.S_IFREG | 0o666, 7, 8}, {"private/open", syscall.S_IFDIR | 0o777, 7, 8},
		{"setgid", syscall.S_IFDIR | 0o2777, 7, 8},
	}
	for _, test := range []struct {
		deed
		want syscall.Errno
	}{
		{deed{call: "create", at: "open/new", mode: 0o644}, none}, {deed{call: "create", at: "shut/new", mode: 0o644}, access},
		{deed{call: "create", at: "shut/free", mode: 0o644}, syscall.EEXIST}, {deed{call: "create", at: "private/open/new", mode: 0o644}, access},
		{deed{call: "create", at: "setgid/new", mode: 0o2775}, none}, {deed{call: "mkdir", at: "setgid/new", mode: 0o775}, none},
		{deed{call: "mkdir", at: "shut/new", mode: 0o755}, access}, {deed{call: "mkdir", at: "sticky/new", mode: 0o755}, none},
		{deed{call: "unlink", at: "open/other"}, none}, {deed{call: "unlink", at: "sticky/other"}, perm}, {deed{call: "unlink", at: "sticky/mine"}, none},
		{deed{call: "unlink", at: "shut/mine"}, access}, {deed{call: "unlink", at: "shut/none"}, syscall.ENOENT}, {deed{call: "unlink", at: "private/none"}, access},
		{deed{call: "rmdir", at: "open/dir"}, none}, {deed{call: "rmdir", at: "sticky/dir"}, perm},
		{deed{call: "link", at: "open/free", to: "open/new"}, none}, {deed{call: "link", at: "open/other", to: "open/new"}, perm},
		{deed{call: "link", at: "open/mine", to: "open/new"}, none}, {deed{call: "link", at: "open/suid", to: "open/new"}, perm},
		{deed{call: "link", at: "private/free", to: "open/new"}, access}, {deed{call: "link", at: "open/free", to: "shut/new"}, access},
		{deed{call: "link", at: "open/free", to: "shut/free"}, syscall.EEXIST},
		{deed{call: "rename", at: "open/other", to: "open/new"}, none}, {deed{call: "rename", at: "sticky/other", to: "open/new"}, perm},
		{deed{call: "rename", at: "open/other", to: "sticky/other"}, perm}, {deed{call: "rename", at: "open/other", to: "shut/new"}, access},
		{deed{call: "rename", at: "open/dir", to: "sticky/mine"}, syscall.ENOTDIR}, {deed{call: "rename", at: "open/dir", to: "sticky/new"}, access}, {deed{call: "rename", at: "open/dir", to: "open/new"}, none},
		{deed{call: "rename", at: "open/away", to: "sticky/new"}, none}, {deed{call: "noreplace", at: "open/other", to: "sticky/other"}, syscall.EEXIST},
		{deed{call: "exchange", at: "open/other", to: "sticky/mine"}, none}, {deed{call: "exchange", at: "open/other", to: "sticky/other"}, perm},
		{deed{call: "exchange", at: "sticky/mine", to: "open/dir"}, access},
		{deed{call: "truncate", at: "open/free"}, none}, {deed{call: "truncate", at: "open/other"}, access}, {deed{call: "truncate", at: "open/mine"}, none},
		{deed{call: "truncate", at: "open/group"}, none}, {deed{call: "truncate", at: "open/notgroup"}, access}, {deed{call: "truncate", at: "private/free"}, access},
		{deed{call: "chmod", at: "open/free", mode: 0o600}, perm}, {deed{call: "chmod", at: "open/free", mode: 0o666}, perm},
		{deed{call: "chmod", at: "open/mine", mode: 0o644}, none}, {deed{call: "chmod", at: "sticky/mine", mode: 0o2755}, none},
		{deed{call: "chmod", at: "private/free", mode: 0o600}, access},
		{deed{call: "chown", at: "open/mine", id: 7}, perm}, {deed{call: "chown", at: "open/mine", id: Nobody}, none}, {deed{call: "chown", at: "open/free", id: Nobody}, perm},
		{deed{call: "chgrp", at: "open/mine", id: 8}, perm}, {deed{call: "chgrp", at: "sticky/mine", id: Nobody}, none}, {deed{call: "chgrp", at: "open/free", id: 8}, perm},
		{deed{call: "touch", at: "open/free"}, none}, {deed{call: "touch", at: "open/other"}, access}, {deed{call: "touch", at: "open/mine"}, none},
		{deed{call: "utimes", at: "open/free"}, perm}, {deed{call: "utimes", at: "open/mine"}, none},
	} {
		tr, ino := squashTree(t, tree)
		code, mode := tr.deed(ino, test.deed)
		require.Equal(t, test.want, squashErrnos[code], "%+v: %v", test.deed, code)
		if os.Geteuid() == 0 {
			requireDiskAgrees(t, tree, test.deed, test.want, mode)
		}
	}
}

// TestSquashedRootIsJudgedAsOnDisk compares trees and deeds of any kind with a local disk; without root, which is needed to become nobody, it
// is the other way round that is tried: root that is not squashed is never refused for want of permission.
func TestSquashedRootIsJudgedAsOnDisk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mode := func(what string, modes ...uint32) uint32 { return rapid.SampledFrom(modes).Draw(rt, what) }
		id := func() uint32 { return rapid.SampledFrom([]uint32{0, 7, Nobody}).Draw(rt, "id") }
		dirMode := func() uint32 {
			return syscall.S_IFDIR | mode("directory", 0o777, 0o1777, 0o755, 0o700, 0o733, 0o722, 0o2777, 0o711, 0o077, 0o707)
		}
		fileMode := func() uint32 {
			return syscall.S_IFREG | mode("file", 0o666, 0o644, 0o600, 0o060, 0o606, 0o4777, 0o2777, 0o2767, 0o444)
		}
		var tree []squashNode
		for _, dir := range []string{"a", "b"} {
			tree = append(tree, squashNode{dir, dirMode(), id(), id()}, squashNode{dir + "/f", fileMode(), id(), id()},
				squashNode{dir + "/d", dirMode(), id(), id()}, squashNode{dir + "/d/g", fileMode(), id(), id()})
		}
		paths := []string{"a/f", "a/d", "a/d/g", "a/new", "a/d/new", "b/f", "b/d", "b/d/g", "b/new", "b/d/new"}
		d := deed{
			call: rapid.SampledFrom([]string{
				"create", "mkdir", "unlink", "rmdir", "link", "rename", "noreplace", "exchange", "truncate", "chmod", "chown", "chgrp", "touch", "utimes",
			}).Draw(rt, "call"),
			at: rapid.SampledFrom(paths).Draw(rt, "at"), to: rapid.SampledFrom(paths).Draw(rt, "to"),
			mode: mode("mode", 0o644, 0o755, 0o2775, 0o4755, 0o666), id: id(),
		}
		if strings.HasPrefix(d.to, d.at+"/") || strings.HasPrefix(d.at, d.to+"/") {
			return // a directory into itself is another error, of which the order is not the question here
		}
		tr, ino := squashTree(t, tree)
		at := tr.attrAt(ino, d.at)
		isDir := at.GetMode()&syscall.S_IFMT == syscall.S_IFDIR
		if d.call == "truncate" && (at.GetUid() == Nobody || isDir) || d.call == "link" && isDir {
			return // what it was opened for is not known; a directory is neither linked nor truncated, whatever else is wrong
		}
		if os.Geteuid() != 0 {
			tr.plain = true
			code, _ := tr.deed(ino, d)
			require.NotEqual(rt, storepb.Code_NO_ACCESS, code)
			return
		}
		code, after := tr.deed(ino, d)
		errno, known := squashErrnos[code]
		require.True(rt, known, "%v", code)
		requireDiskAgrees(rt, tree, d, errno, after)
	})
}

// squasher is a driver whose calls are by root of a squashed host.
type squasher struct {
	*driver
	plain bool // by root after all
}

func squashTree(tb testing.TB, nodes []squashNode) (*squasher, uint64) {
	tr := &squasher{driver: newDriver(tb)}
	root := tr.mkdir(RootIno, "tree")
	for _, n := range nodes {
		parent := tr.walk(root, path.Dir(n.path))
		ino := tr.create(parent, path.Base(n.path), n.mode).ok().GetAttr().GetIno()
		tr.do(here, opOf(&storepb.SetAttr{Ino: ino, Uid: &n.uid, Gid: &n.gid, Mode: proto.Uint32(n.mode & modeBits)})).ok()
	}
	return tr, root
}

func (tr *squasher) walk(from uint64, to string) uint64 {
	if to == "." {
		return from
	}
	for element := range strings.SplitSeq(to, "/") {
		from = tr.at(from, element)
	}
	return from
}

func (tr *squasher) attrAt(root uint64, at string) *storepb.Attr {
	return tr.ns.Query(lookupOf(tr.walk(root, path.Dir(at)), path.Base(at))).GetAttr()
}

// deed does a deed, and answers the mode that its path has then; 0: there is none.
func (tr *squasher) deed(root uint64, d deed) (storepb.Code, uint32) {
	parent, name := tr.walk(root, path.Dir(d.at)), []byte(path.Base(d.at))
	ino := tr.at(parent, string(name))
	now := int64(time.Hour)
	var op proto.Message
	switch d.call {
	case "create":
		op = &storepb.Create{Parent: parent, Name: name, Mode: syscall.S_IFREG | d.mode, Exclusive: true}
	case "mkdir":
		op = &storepb.Create{Parent: parent, Name: name, Mode: syscall.S_IFDIR | d.mode&0o1777} // as every kernel asks
	case "unlink", "rmdir":
		op = &storepb.Unlink{Parent: parent, Name: name, Directory: d.call == "rmdir"}
	case "link":
		op = &storepb.Link{Ino: ino, Parent: tr.walk(root, path.Dir(d.to)), Name: []byte(path.Base(d.to))}
	case "rename", "noreplace", "exchange":
		op = &storepb.Rename{
			Parent: parent, Name: name, NewParent: tr.walk(root, path.Dir(d.to)), NewName: []byte(path.Base(d.to)),
			NoReplace: d.call == "noreplace", Exchange: d.call == "exchange",
		}
	case "truncate":
		op = &storepb.SetContent{Ino: ino, IfVersion: tr.ns.Query(getAttr(ino)).GetAttr().GetVersion()}
	case "chmod":
		op = &storepb.SetAttr{Ino: ino, Mode: &d.mode}
	case "chown":
		op = &storepb.SetAttr{Ino: ino, Uid: &d.id}
	case "chgrp":
		op = &storepb.SetAttr{Ino: ino, Gid: &d.id}
	case "touch":
		op = &storepb.SetAttr{Ino: ino, AtimeNow: true, MtimeNow: true}
	case "utimes":
		op = &storepb.SetAttr{Ino: ino, Atime: &now, Mtime: &now}
	}
	if ino == 0 && d.call != "create" && d.call != "mkdir" && d.call != "unlink" && d.call != "rmdir" && !strings.HasSuffix(d.call, "replace") &&
		d.call != "rename" && d.call != "exchange" {
		// The kernel of the mount has not found it, if its caller could look.
		op = &storepb.Unlink{Parent: parent, Name: name}
	}
	cmd := tr.next(here, opOf(op))
	cmd.Caller = &storepb.Caller{Host: "here", Uid: Nobody, Gid: Nobody, Squashed: true}
	if tr.plain {
		cmd.Caller = &storepb.Caller{Host: "here"}
	}
	code := tr.apply(cmd).GetCode()
	return code, tr.attrAt(root, d.at).GetMode() & modeBits
}

// requireDiskAgrees does a deed as nobody on a local disk.
func requireDiskAgrees(t require.TestingT, nodes []squashNode, d deed, want syscall.Errno, mode uint32) {
	dir, err := os.MkdirTemp("", "squash")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, n := range nodes {
		at := filepath.Join(dir, n.path)
		if n.mode&syscall.S_IFMT == syscall.S_IFDIR {
			require.NoError(t, os.Mkdir(at, 0o777))
		} else {
			require.NoError(t, os.WriteFile(at, nil, 0o666))
		}
		require.NoError(t, os.Chown(at, int(n.uid), int(n.gid)))
		require.NoError(t, syscall.Chmod(at, n.mode&modeBits))
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine, with all that was done to it
		done <- doAsNobody(dir, d)
	}()
	errno := syscall.Errno(0)
	if err := <-done; err != nil {
		require.True(t, errors.As(err, &errno), "%v", err)
	}
	require.Equal(t, errno, want, "a local disk says %v to %+v of %+v", errno, d, nodes)
	var stat syscall.Stat_t
	if err := syscall.Lstat(filepath.Join(dir, d.at), &stat); err == nil && d.call != "exchange" && d.call != "chown" && d.call != "chgrp" { // of those, a kernel says itself what mode is left
		require.Equal(t, stat.Mode&modeBits, mode, "mode %o on a local disk, %o here, after %+v of %+v", stat.Mode&modeBits, mode, d, nodes)
	}
}

// doAsNobody takes all rights from its thread but those that any user has.
func doAsNobody(dir string, d deed) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	unix.Umask(0)
	if err := unix.Chdir(dir); err != nil {
		return err
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return errno
	}
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := syscall.RawSyscall(call, Nobody, Nobody, Nobody); errno != 0 {
			return errno
		}
	}
	switch d.call {
	case "create":
		fd, err := unix.Open(d.at, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, d.mode)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	case "mkdir":
		return unix.Mkdir(d.at, d.mode)
	case "unlink":
		return unix.Unlink(d.at)
	case "rmdir":
		return unix.Rmdir(d.at)
	case "link":
		return unix.Link(d.at, d.to)
	case "rename":
		return unix.Rename(d.at, d.to)
	case "noreplace":
		return unix.Renameat2(unix.AT_FDCWD, d.at, unix.AT_FDCWD, d.to, unix.RENAME_NOREPLACE)
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, d.at, unix.AT_FDCWD, d.to, unix.RENAME_EXCHANGE)
	case "truncate":
		return unix.Truncate(d.at, 0)
	case "chmod":
		return unix.Chmod(d.at, d.mode)
	case "chown":
		return unix.Chown(d.at, int(d.id), -1)
	case "chgrp":
		return unix.Chown(d.at, -1, int(d.id))
	case "touch":
		return unix.UtimesNanoAt(unix.AT_FDCWD, d.at, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0)
	case "utimes":
		return unix.UtimesNanoAt(unix.AT_FDCWD, d.at, []unix.Timespec{{Sec: 5}, {Sec: 5}}, 0)
	}
	return unix.ENOSYS
}
