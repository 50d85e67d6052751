package fuseattr

import (
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/storepb"
)

const (
	// PermissionBits are the bits of a mode without its type.
	PermissionBits = 0o7777
	// BlockSize is the preferred size for I/O, and the unit of statfs.
	BlockSize = 4096

	sectorSize = 512 // the unit of st_blocks
)

func kernelTime(ns int64) (sec uint64, nsec uint32) {
	t := time.Unix(0, ns)
	return uint64(t.Unix()), uint32(t.Nanosecond())
}

// FillEntry fills the answer for a name. Like all such functions, it leaves the validity at zero, so the
// kernel caches nothing.
func FillEntry(out *fuse.EntryOut, attr *storepb.Attr) {
	out.NodeId = attr.GetIno()
	FillAttr(&out.Attr, attr)
}

// FillAttr fills the answer for stat.
func FillAttr(out *fuse.Attr, attr *storepb.Attr) {
	out.Ino = attr.GetIno()
	out.Size = attr.GetSize()
	out.Blocks = sectors(attr.GetSize())
	out.Atime, out.Atimensec = kernelTime(attr.GetAtime())
	out.Mtime, out.Mtimensec = kernelTime(attr.GetMtime())
	out.Ctime, out.Ctimensec = kernelTime(attr.GetCtime())
	out.Mode = attr.GetMode()
	out.Nlink = attr.GetNlink()
	out.Uid, out.Gid = attr.GetUid(), attr.GetGid()
	out.Blksize = BlockSize
}

// FillStatx fills the answer for statx, which includes the time of birth.
func FillStatx(out *fuse.Statx, attr *storepb.Attr) {
	out.Mask = unix.STATX_BASIC_STATS | unix.STATX_BTIME
	out.Ino = attr.GetIno()
	out.Size = attr.GetSize()
	out.Blocks = sectors(attr.GetSize())
	out.Atime.Sec, out.Atime.Nsec = kernelTime(attr.GetAtime())
	out.Mtime.Sec, out.Mtime.Nsec = kernelTime(attr.GetMtime())
	out.Ctime.Sec, out.Ctime.Nsec = kernelTime(attr.GetCtime())
	out.Btime.Sec, out.Btime.Nsec = kernelTime(attr.GetBtime())
	out.Mode = uint16(attr.GetMode())
	out.Nlink = attr.GetNlink()
	out.Uid, out.Gid = attr.GetUid(), attr.GetGid()
	out.Blksize = BlockSize
}

func sectors(size uint64) uint64 { return (size + sectorSize - 1) / sectorSize }

// Nanoseconds converts a time of the kernel, with signed seconds, to nanoseconds since the epoch. A time more
// than 292 years away becomes the nearest possible one.
func Nanoseconds(sec uint64, nsec uint32) *int64 {
	s, limit := int64(sec), int64(math.MaxInt64/time.Second)
	switch {
	case s >= limit:
		return new(int64(math.MaxInt64))
	case s <= -limit:
		return new(int64(math.MinInt64))
	}
	return new(s*int64(time.Second) + int64(nsec))
}

// userPrefix is the only supported namespace of extended attributes. Others, such as access control lists and
// security labels, get EOPNOTSUPP at once: the kernel asks for some itself.
const userPrefix = "user."

// CheckXattr returns an error for the name of an extended attribute which no file can have.
func CheckXattr(name string) syscall.Errno {
	bare, isUser := strings.CutPrefix(name, userPrefix)
	switch {
	case !isUser:
		return syscall.EOPNOTSUPP
	case bare == "":
		return syscall.EINVAL
	}
	return 0
}
