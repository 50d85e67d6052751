package serve

import (
	"encoding/binary"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	opForget      = 2
	opInit        = 26
	opInterrupt   = 36
	opBatchForget = 42
)

// answerRoom is for what an answer has besides data.
const answerRoom = 4096

var headerSize = int(unsafe.Sizeof(fuse.InHeader{}))

// headerOf is the zero header if the request is too short for one.
func headerOf(request []byte) (header fuse.InHeader) {
	if len(request) >= headerSize {
		_, _ = binary.Decode(request, binary.NativeEndian, &header)
	}
	return header
}

// isAskedAgain tells of a request that was read before, and not answered (FUSE_UNIQUE_RESEND).
func isAskedAgain(header *fuse.InHeader) bool {
	return header.Unique>>63 != 0 && header.Opcode != opInterrupt
}

func waitsForAnswer(header *fuse.InHeader) bool {
	return header.Opcode != opForget && header.Opcode != opBatchForget && header.Opcode != opInterrupt
}

func refusal(unique uint64, errno unix.Errno) []byte {
	header := fuse.OutHeader{Status: -int32(errno), Unique: unique}
	header.Length = uint32(binary.Size(header))
	answer, _ := binary.Append(nil, binary.NativeEndian, header)
	return answer
}

// statusOf is 0 if there is no answer.
func statusOf(answer []byte) int32 {
	var header fuse.OutHeader
	if len(answer) >= binary.Size(header) {
		_, _ = binary.Decode(answer, binary.NativeEndian, &header)
	}
	return header.Status
}
