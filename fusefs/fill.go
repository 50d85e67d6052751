package fusefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/fault"
	"lockfs/raftstore/storepb"
)

const (
	permissionBits = 0o7777
	blockSize      = 4096 // preferred for I/O, and the unit of statfs
	sectorSize     = 512  // the unit of st_blocks
)

func kernelTime(ns int64) (sec uint64, nsec uint32) {
	t := time.Unix(0, ns)
	return uint64(t.Unix()), uint32(t.Nanosecond())
}

// fillEntry, as all that fill an answer, leaves the times for which the kernel may keep it at zero.
func fillEntry(out *fuse.EntryOut, attr *storepb.Attr) {
	out.NodeId = attr.GetIno()
	out.SetEntryTimeout(fault.CacheTime)
	fillAttr(&out.Attr, attr)
}

func fillAttr(out *fuse.Attr, attr *storepb.Attr) {
	out.Ino = attr.GetIno()
	out.Size = attr.GetSize()
	out.Blocks = sectors(attr.GetSize())
	out.Atime, out.Atimensec = kernelTime(attr.GetAtime())
	out.Mtime, out.Mtimensec = kernelTime(attr.GetMtime())
	out.Ctime, out.Ctimensec = kernelTime(attr.GetCtime())
	out.Mode = attr.GetMode()
	out.Nlink = attr.GetNlink()
	out.Uid, out.Gid = attr.GetUid(), attr.GetGid()
	out.Blksize = blockSize
}

func fillStatx(out *fuse.Statx, attr *storepb.Attr) {
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
	out.Blksize = blockSize
}

func sectors(size uint64) uint64 { return (size + sectorSize - 1) / sectorSize }
