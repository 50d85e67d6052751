package mountpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Protection prevents files in the bare directory of a mount point, which is visible without lockfs.
type Protection int

// The protections.
const (
	Unprotected Protection = iota
	Immutable              // the immutable attribute, also effective for root and after a restart
	Covered                // an empty read-only tmpfs on it, until a restart
	ReadOnly               // its file system is read-only
	Automounted            // an automount: an access mounts lockfs, or fails
)

const (
	immutableFlag  = 0x10 // FS_IMMUTABLE_FL
	coverSource    = "lockfs-bare"
	coverFSType    = "tmpfs"
	automountsType = "autofs"
)

// Bare is the directory of a mount point, below lockfs.
type Bare struct {
	Path       string // without symbolic links
	Mounted    bool   // lockfs is mounted there
	Protection Protection
	Shared     bool // other hosts or programs may change its file system
	Empty      bool
}

// sharedFileSystems are network, cluster and process file systems. An attribute there would affect all hosts,
// and may not hold.
var sharedFileSystems = []int64{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC,
	unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.V9FS_MAGIC, unix.OCFS2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
	0x01161970 /* GFS2 */, 0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */, 0x20030528, /* OrangeFS */
}

// Examine describes the bare directory of a mount point. Only root can look below a mount.
func Examine(dir string) (*Bare, error) {
	bare, open, err := examine(dir)
	if open != nil {
		err = errors.Join(err, open.Close())
	}
	return bare, err
}

// examine also returns the open directory; nil if its protection needs none.
func examine(dir string) (*Bare, *os.File, error) {
	path, err := resolve(dir)
	if err != nil {
		return nil, nil, err
	}
	stack, err := mountsAt(path)
	if err != nil {
		return nil, nil, err
	}
	bare := &Bare{Path: path, Mounted: slices.ContainsFunc(stack, func(m mountEntry) bool { return m.isOurs() })}
	below := slices.DeleteFunc(stack, func(m mountEntry) bool { return m.isOurs() })
	if len(below) > 0 {
		switch top := below[len(below)-1]; {
		case isCover(top):
			bare.Protection, bare.Empty = Covered, true
			return bare, nil, nil
		case top.fsType == automountsType:
			bare.Protection = Automounted
			return bare, nil, nil
		case bare.Mounted:
			return bare, nil, fmt.Errorf("another file system (%s) is mounted below lockfs: unmount lockfs to look at it", top.fsType)
		}
	}
	directory, err := openBare(path, bare.Mounted)
	if err != nil {
		return bare, nil, err
	}
	return bare, directory, bare.look(directory)
}

// resolve returns a path without symbolic links. It asks nothing of a mount at its end, which may not answer.
func resolve(dir string) (path string, err error) {
	fd, err := unix.Open(filepath.Clean(dir), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return pathOf(fd)
}

// IsMounted reports whether lockfs is in the mount table at a directory, dead or alive. It asks nothing of
// the mount.
func IsMounted(dir string) (bool, error) {
	path, err := resolve(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	stack, err := mountsAt(path)
	return slices.ContainsFunc(stack, func(m mountEntry) bool { return m.isOurs() }), err
}

// isCover reports whether a mount is from [Protect].
func isCover(m mountEntry) bool { return m.fsType == coverFSType && m.source == coverSource }

// openBare opens the directory at a path, below mounts on it: in a copy of its own mount, which has no other
// mounts.
func openBare(path string, mounted bool) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !mounted {
		fd, err := unix.Open(path, flags, 0)
		return fileOf(fd, path, err)
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, filepath.Dir(path), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("look below the mount at %s: %w", path, err)
	}
	defer func() { _ = unix.Close(tree) }()
	fd, err := unix.Openat(tree, filepath.Base(path), flags, 0)
	return fileOf(fd, path, err)
}

func fileOf(fd int, path string, err error) (*os.File, error) {
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// look fills in the facts of the open directory.
func (b *Bare) look(directory *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(directory.Fd()), &st); err != nil {
		return fmt.Errorf("statfs %s: %w", b.Path, err)
	}
	b.Shared = slices.Contains(sharedFileSystems, st.Type)
	if flags, err := attributes(directory); err == nil && flags&immutableFlag != 0 {
		b.Protection = Immutable
	} else if st.Flags&unix.ST_RDONLY != 0 {
		b.Protection = ReadOnly
	}
	var err error
	b.Empty, err = isEmpty(directory)
	return err
}

func attributes(directory *os.File) (uint32, error) {
	return unix.IoctlGetUint32(int(directory.Fd()), unix.FS_IOC_GETFLAGS)
}

func setAttributes(directory *os.File, flags uint32) error {
	return os.NewSyscallError("FS_IOC_SETFLAGS", unix.IoctlSetPointerInt(int(directory.Fd()), unix.FS_IOC_SETFLAGS, int(flags)))
}

func isEmpty(directory *os.File) (bool, error) {
	if _, err := directory.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	switch _, err := directory.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return true, nil
	default:
		return false, err
	}
}

// ErrNotEmpty means that a bare directory has files, which a protection would lock up or hide.
var ErrNotEmpty = errors.New("the directory has files in it while lockfs is not mounted; move them away")

// Protect prevents new files in the bare directory of a mount point, also by root and also below a mount. It
// sets the immutable attribute on local file systems with support for it; elsewhere it mounts a read-only
// tmpfs. It has no effect on a protected directory.
func Protect(dir string) (bare *Bare, changed bool, err error) {
	bare, directory, err := examine(dir)
	if directory != nil {
		defer func() { err = errors.Join(err, directory.Close()) }()
	}
	if err != nil || bare.Protection != Unprotected {
		return bare, false, err
	}
	if !bare.Empty {
		return bare, false, ErrNotEmpty
	}
	if !bare.Shared {
		if err := makeImmutable(directory); err == nil || errors.Is(err, ErrNotEmpty) {
			bare.Protection = Immutable
			return bare, true, err
		}
	}
	if err := cover(bare); err != nil {
		return bare, false, fmt.Errorf("cover %s with a read-only tmpfs: %w", bare.Path, err)
	}
	bare.Protection = Covered
	return bare, true, nil
}

// makeImmutable sets the attribute, unless a program has created a file meanwhile.
func makeImmutable(directory *os.File) error {
	flags, err := attributes(directory)
	if err != nil {
		return err
	}
	if err := setAttributes(directory, flags|immutableFlag); err != nil {
		return err
	}
	empty, err := isEmpty(directory)
	if err == nil && !empty {
		err = ErrNotEmpty
	}
	if err != nil {
		return errors.Join(err, setAttributes(directory, flags))
	}
	return nil
}

// cover mounts the tmpfs, beneath a lockfs mount.
func cover(bare *Bare) error {
	fd, path, there, err := inspectOpen(bare.Path)
	if err != nil {
		return err
	}
	place := &Place{Path: path, seen: os.NewFile(uintptr(fd), path)}
	defer func() { _ = place.Close() }()
	const flags = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	fs, err := newFileSystem(coverFSType, []setting{{"source", coverSource}, {"mode", "0755"}, {"size", "4k"}, {"ro", ""}}, flags)
	if err != nil {
		return err
	}
	defer func() { _ = fs.Close() }()
	if there == nil {
		_, err := place.attach(fs.root, onTop)
		return err
	}
	if _, err = place.attach(fs.root, beneath); errors.Is(err, unix.EINVAL) {
		err = errors.New("the kernel cannot mount it beneath lockfs; it is done when lockfs is mounted the next time")
	}
	return err
}

// Unprotect undoes [Protect], also below a mount, and reports whether there was a protection. A cover below a
// mount stays until the mount is gone.
func Unprotect(dir string) (changed bool, err error) {
	bare, directory, err := examine(dir)
	if directory != nil {
		defer func() { err = errors.Join(err, directory.Close()) }()
	}
	if err != nil {
		return false, err
	}
	switch bare.Protection {
	case Immutable:
		flags, err := attributes(directory)
		if err == nil {
			err = setAttributes(directory, flags&^immutableFlag)
		}
		return err == nil, err
	case Covered:
		if bare.Mounted {
			return false, errors.New("lockfs is mounted over the read-only tmpfs; unmount that first")
		}
		if err := unix.Unmount(bare.Path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
			return false, fmt.Errorf("unmount the read-only tmpfs at %s: %w", bare.Path, err)
		}
		return true, nil
	}
	return false, nil
}
