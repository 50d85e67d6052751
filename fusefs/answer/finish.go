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
	Tell(device, answers)
	created := make(map[ids.Inode]creation)
	for _, answer := range answers {
		if len(answer) < answerReply {
			continue
		}
		reply := answer[answerReply:]
		var opened fuse.CreateOut
		at := time.Duration(binary.NativeEndian.Uint64(answer))
		if parseReply(reply, &opened) && hostinfo.BootTime()-at < freshAnswer {
			created[ids.Inode(opened.NodeId)] = creation{uint32(binary.NativeEndian.Uint64(answer[8:])), opened.Attr}
		}
	}
	if len(created) > 0 {
		answerAttributes(device, created)
	}
}

// Tell is Finish for a mount with which another process goes on: that answers what the kernel asks after a creation.
func Tell(device *os.File, answers [][]byte) {
	for _, answer := range answers {
		if len(answer) >= answerReply {
			_, _ = unix.Write(int(device.Fd()), answer[answerReply:])
		}
	}
}

// AskAgain has the kernel ask once more what it asked a process that has ended. The error is EINVAL if it cannot (before Linux 6.9):
// whoever waits for an answer then waits until the mount ends.
func AskAgain(device *os.File) error {
	resend, err := binary.Append(nil, binary.NativeEndian, fuse.OutHeader{
		Length: uint32(binary.Size(fuse.OutHeader{})), Status: notifyResend,
	})
	if err == nil {
		_, err = unix.Write(int(device.Fd()), resend)
	}
	return os.NewSyscallError("write", err)
}

// creation is one of which the open(2) may still be under way.
type creation struct {
	thread uint32
	attr   fuse.Attr
}

func answerAttributes(device *os.File, created map[ids.Inode]creation) {
	_ = AskAgain(device)
	fd := int(device.Fd())
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
