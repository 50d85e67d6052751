package fusefs

import (
	"encoding/binary"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// An answer tells the kernel of a success: whom it was for and since when, and the bytes as they are
// written to /dev/fuse. go-fuse writes them in the ordinary course; an answer is for whoever has to do it
// in place of a process that was killed ([Finish]). The descriptor that an open yields then is of no use,
// but its maker knows of the name.
//
// Layout: time (CLOCK_BOOTTIME, 8 bytes), thread (8), reply.
const answerReply = 16

// lastingAttr is for how long the kernel may keep attributes of a mount that nobody serves any more.
const lastingAttr = time.Second

// entryAnswer tells of a new name.
func entryAnswer(header *fuse.InHeader) func(*storepb.Result) []byte {
	return func(result *storepb.Result) []byte {
		var out fuse.EntryOut
		fillEntry(&out, result.GetAttr())
		out.SetAttrTimeout(lastingAttr)
		return newAnswer(header, &out)
	}
}

// createAnswer tells of a file that was created and opened.
func createAnswer(header *fuse.InHeader) func(*storepb.Result) []byte {
	return func(result *storepb.Result) []byte {
		if !result.GetCreated() {
			return nil
		}
		var out fuse.CreateOut
		fillEntry(&out.EntryOut, result.GetAttr())
		out.SetAttrTimeout(lastingAttr)
		out.OpenFlags = fuse.FOPEN_DIRECT_IO
		return newAnswer(header, &out)
	}
}

// emptyAnswer tells of success and nothing else.
func emptyAnswer(header *fuse.InHeader) func(*storepb.Result) []byte {
	return func(*storepb.Result) []byte { return newAnswer(header, struct{}{}) }
}

func newAnswer(header *fuse.InHeader, body any) []byte {
	answer := binary.NativeEndian.AppendUint64(nil, uint64(hostinfo.BootTime()))
	answer = binary.NativeEndian.AppendUint64(answer, uint64(header.Pid))
	return append(answer, render(header.Unique, body)...)
}

// render makes a reply. Its parts have fixed sizes and no gaps, so nothing can fail.
func render(unique uint64, body any) []byte {
	header := fuse.OutHeader{Unique: unique}
	header.Length = uint32(binary.Size(header) + binary.Size(body))
	reply, _ := binary.Append(nil, binary.NativeEndian, header)
	reply, _ = binary.Append(reply, binary.NativeEndian, body)
	return reply
}

// parseReply reads what render made; false if it is too short.
func parseReply(reply []byte, body any) bool {
	header := binary.Size(fuse.OutHeader{})
	if len(reply) < header {
		return false
	}
	_, err := binary.Decode(reply[header:], binary.NativeEndian, body)
	return err == nil
}
