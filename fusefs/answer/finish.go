package answer

import (
	"encoding/binary"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/kernel"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/ids"
)

const (
	opGetAttr    = 3 // FUSE_GETATTR
	notifyResend = 7 // FUSE_NOTIFY_RESEND, Linux 6.9

	// quiet is how long the kernel may take to ask again before there is nothing left to finish.
	quiet = 20 * time.Millisecond
	// freshAnswer is how old an answer can be whose open(2) may still be under way, also while another program takes over.
	freshAnswer = 3 * time.Second
)

// Finish tells the kernel what a mount's process, that is gone or leaving, had on its way: answers as it left them. It is called by
// the process that finishes answers for another. What the kernel was told already it refuses, which is the rule.
//
// An open(2) that creates is two requests: after CREATE the kernel asks for the attributes, to judge by
// them. If the process was killed between the two, the file is there and its maker would be told of an
// error. So attributes are answered too, to the thread that created the inode a moment ago. Linux before
// 6.9 cannot repeat a request that the process had read; there, that gap remains.
func Finish(device *os.File, answers [][]byte) {
	fd := int(device.Fd())
	created := make(map[ids.Inode]creation)
	for _, answer := range answers {
		if len(answer) < answerReply {
			continue
		}
		reply := answer[answerReply:]
		_, _ = unix.Write(fd, reply)
		var opened fuse.CreateOut
		at := time.Duration(binary.NativeEndian.Uint64(answer))
		if parseReply(reply, &opened) && hostinfo.BootTime()-at < freshAnswer {
			created[ids.Inode(opened.NodeId)] = creation{uint32(binary.NativeEndian.Uint64(answer[8:])), opened.Attr}
		}
	}
	if len(created) > 0 {
		answerAttributes(fd, created)
	}
}

// creation is one of which the open(2) may still be under way.
type creation struct {
	thread uint32
	attr   fuse.Attr
}

func answerAttributes(fd int, created map[ids.Inode]creation) {
	resend, _ := binary.Append(nil, binary.NativeEndian, fuse.OutHeader{
		Length: uint32(binary.Size(fuse.OutHeader{})), Status: notifyResend,
	})
	_, _ = unix.Write(fd, resend)
	if unix.SetNonblock(fd, true) != nil {
		return
	}
	request := make([]byte, kernel.MaxWrite+kernel.BlockSize)
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, int(quiet.Milliseconds())); err == unix.EINTR {
			continue
		} else if err != nil || n == 0 {
			return
		}
		n, err := unix.Read(fd, request)
		if err != nil {
			return
		}
		var header fuse.InHeader
		if _, err := binary.Decode(request[:n], binary.NativeEndian, &header); err != nil || header.Opcode != opGetAttr {
			continue // it ends with the mount
		}
		c, found := created[ids.Inode(header.NodeId)]
		if found && c.thread == header.Pid {
			out := fuse.AttrOut{Attr: c.attr} // for this call only: they are as old as the answer
			_, _ = unix.Write(fd, render(header.Unique, &out))
		}
	}
}
