package fusefs

import (
	"encoding/binary"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Requests that change something, by their numbers in fuse(4).
const (
	opSetAttr       = 4
	opSymlink       = 6
	opMknod         = 8
	opMkdir         = 9
	opUnlink        = 10
	opRmdir         = 11
	opRename        = 12
	opLink          = 13
	opOpen          = 14
	opWrite         = 16
	opSetXAttr      = 21
	opRemoveXAttr   = 24
	opCreate        = 35
	opIoctl         = 39
	opFallocate     = 43
	opRename2       = 45
	opCopyFileRange = 47
	opTmpfile       = 51
)

// onlyOnce reports whether a request may have an effect again if a crashed process has already done it. Its
// caller gets an error, as without an answer of the cluster; the file of an exclusive creation is not there
// then. Taking or releasing a lock a second time has no further effect.
func onlyOnce(request []byte) bool {
	var open fuse.OpenIn
	_, _ = binary.Decode(request[:min(len(request), binary.Size(open.InHeader))], binary.NativeEndian, &open.InHeader)
	switch open.Opcode {
	case opOpen:
		_, err := binary.Decode(request, binary.NativeEndian, &open)
		return err != nil || open.Flags&syscall.O_TRUNC != 0
	case opSetAttr, opSymlink, opMknod, opMkdir, opUnlink, opRmdir, opRename, opLink, opWrite, opSetXAttr, opRemoveXAttr, opCreate,
		opIoctl, opFallocate, opRename2, opCopyFileRange, opTmpfile:
		return true
	}
	return false
}
