package orphanreply

import (
	"encoding/binary"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// Layout of an answer: time (CLOCK_BOOTTIME, 8 bytes), thread (8), reply.
const answerReply = 16

// lastingAttr is how long the kernel may cache attributes of a mount without a process.
const lastingAttr = time.Second

// Entry returns a function that encodes the answer for a new name.
func Entry(header *fuse.InHeader) func(*storepb.Result) []byte {
	return func(result *storepb.Result) []byte {
		var out fuse.EntryOut
		fuseattr.FillEntry(&out, result.GetAttr())
		out.SetAttrTimeout(lastingAttr)
		return newAnswer(header, &out)
	}
}

// Create returns a function that encodes the answer for a new open file with a handle.
func Create(header *fuse.InHeader, handle uint64) func(*storepb.Result) []byte {
	return func(result *storepb.Result) []byte {
		if !result.GetCreated() {
			return nil
		}
		var out fuse.CreateOut
		fuseattr.FillEntry(&out.EntryOut, result.GetAttr())
		out.SetAttrTimeout(lastingAttr)
		out.Fh, out.OpenFlags = handle, fuse.FOPEN_DIRECT_IO
		return newAnswer(header, &out)
	}
}

// Empty returns a function that encodes success without data.
func Empty(header *fuse.InHeader) func(*storepb.Result) []byte {
	return func(*storepb.Result) []byte { return newAnswer(header, struct{}{}) }
}

func newAnswer(header *fuse.InHeader, body any) []byte {
	answer := binary.NativeEndian.AppendUint64(nil, uint64(hostinfo.BootTime()))
	answer = binary.NativeEndian.AppendUint64(answer, uint64(header.Pid))
	return append(answer, render(header.Unique, body)...)
}

// render encodes a reply. Its parts have fixed sizes and no gaps, so encoding cannot fail.
func render(unique uint64, body any) []byte {
	header := fuse.OutHeader{Unique: unique}
	header.Length = uint32(binary.Size(header) + binary.Size(body))
	reply, _ := binary.Append(nil, binary.NativeEndian, header)
	reply, _ = binary.Append(reply, binary.NativeEndian, body)
	return reply
}

// parseReply decodes a reply of render, and returns false if it is too short.
func parseReply(reply []byte, body any) bool {
	header := binary.Size(fuse.OutHeader{})
	if len(reply) < header {
		return false
	}
	_, err := binary.Decode(reply[header:], binary.NativeEndian, body)
	return err == nil
}
