package serve

import (
	"encoding/binary"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	opForget      = 2
	opRead        = 15
	opRelease     = 18
	opGetXAttr    = 22
	opListXAttr   = 23
	opInit        = 26
	opReadDir     = 28
	opReleaseDir  = 29
	opInterrupt   = 36
	opDestroy     = 38
	opIoctl       = 39
	opBatchForget = 42
	opReadDirPlus = 44
)

// OpSetLkw is FUSE_SETLKW.
const OpSetLkw = 33

const (
	// answerRoom is for an answer with at most the target of a symbolic link as data.
	answerRoom = 8192
	// waitingRoom is for the answer to a request that may wait, without data: ten thousand may wait.
	waitingRoom = 256
	// waitingData limits the data of an answer to a request that may wait.
	waitingData = 64 << 10
)

var headerSize = int(unsafe.Sizeof(fuse.InHeader{}))

// headerOf returns the zero header for a request without one.
func headerOf(request []byte) (header fuse.InHeader) {
	if len(request) >= headerSize {
		_, _ = binary.Decode(request, binary.NativeEndian, &header)
	}
	return header
}

// isAskedAgain reports whether the kernel sends a request again (FUSE_UNIQUE_RESEND).
func isAskedAgain(header *fuse.InHeader) bool {
	return header.Unique>>63 != 0 && header.Opcode != opInterrupt
}

func waitsForAnswer(header *fuse.InHeader) bool {
	return header.Opcode != opForget && header.Opcode != opBatchForget && header.Opcode != opInterrupt
}

// dataAsked returns a pointer into the request, to the size of the wanted data; nil if the answer has a fixed
// size.
func dataAsked(request []byte) *uint32 {
	var at uintptr
	switch header := headerOf(request); header.Opcode {
	case opRead, opReadDir, opReadDirPlus:
		at = unsafe.Offsetof(fuse.ReadIn{}.Size)
	case opGetXAttr, opListXAttr:
		at = unsafe.Offsetof(fuse.GetXAttrIn{}.Size)
	case opIoctl:
		at = unsafe.Offsetof(fuse.IoctlIn{}.OutSize)
	default:
		return nil
	}
	if uintptr(len(request)) < at+unsafe.Sizeof(uint32(0)) {
		return nil
	}
	return (*uint32)(unsafe.Pointer(&request[at]))
}

func refusal(unique uint64, errno unix.Errno) []byte {
	header := fuse.OutHeader{Status: -int32(errno), Unique: unique}
	header.Length = uint32(binary.Size(header))
	answer, _ := binary.Append(nil, binary.NativeEndian, header)
	return answer
}

// statusOf returns 0 without an answer.
func statusOf(answer []byte) int32 {
	var header fuse.OutHeader
	if len(answer) >= binary.Size(header) {
		_, _ = binary.Decode(answer, binary.NativeEndian, &header)
	}
	return header.Status
}
