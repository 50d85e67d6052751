package answer

import (
	"encoding/binary"
	"os"
	"slices"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/hostinfo"
)

// Fresh is how old an answer can be whose open(2) may still be under way, also while another program takes over.
const Fresh = 3 * time.Second

const (
	opGetAttr    = 3 // FUSE_GETATTR
	notifyResend = 7 // FUSE_NOTIFY_RESEND, Linux 6.9

	// quiet is how long the kernel may take to ask again before it is seen whether anything is left to finish.
	quiet = 20 * time.Millisecond
	// oldAnswer is how old that of a thread can be which is seen to be in such a call still: its host may have stood still.
	oldAnswer = time.Minute
	// lateAsk is how long a thread is waited for that may still be in its open(2), and longest how long others are answered meanwhile.
	lateAsk = time.Second
	longest = 5 * time.Second
)

// Finish tells the kernel what a mount's process, that is gone or leaving, had on its way: answers as it left them. It is called by
// the process that finishes answers for another. What the kernel was told already it refuses, which is the rule.
//
// An open(2) that creates is two requests: after CREATE the kernel asks for the attributes, to judge by
// them. If the process was killed between the two, the file is there and its maker would be told of an
// error. So attributes are answered too, to the thread that created the inode and is in that call still. Linux before
// 6.9 cannot repeat a request that the process had read; there, that gap remains.
func Finish(device *os.File, answers [][]byte) { FinishAfter(0, device, answers) }

// FinishAfter is Finish for who has waited so long for another process that was to go on with the mount: nothing gets older by that, as nobody
// was answered meanwhile.
func FinishAfter(pause time.Duration, device *os.File, answers [][]byte) {
	Tell(device, answers)
	var created []Creation
	for _, c := range Creations(answers) {
		if age(c)-pause < oldAnswer {
			created = append(created, c)
		}
	}
	if len(created) > 0 {
		answerAttributes(pause, device, created)
	}
}

// Tell is Finish for a mount with which another process goes on: that answers what the kernel asks after a creation (Creations).
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

// Creation is the attributes with which an open(2) was answered that may still be under way, as its thread has asked for nothing else.
type Creation = thread.Saved[fuse.Attr]

// Creations are those of which answers tell.
func Creations(answers [][]byte) (created []Creation) {
	for _, answer := range answers {
		var opened fuse.CreateOut
		if len(answer) >= answerReply && parseReply(answer[answerReply:], &opened) {
			created = append(created, Creation{
				Thread: uint32(binary.NativeEndian.Uint64(answer[8:])), Value: opened.Attr, At: time.Duration(binary.NativeEndian.Uint64(answer)),
			})
		}
	}
	return created
}

// answerAttributes answers who asks for the attributes of what it has created, until nobody can who has not, or for too long.
func answerAttributes(pause time.Duration, device *os.File, created []Creation) {
	_ = AskAgain(device)
	fd := int(device.Fd())
	if unix.SetNonblock(fd, true) != nil {
		return
	}
	request := make([]byte, kernel.MaxWrite+kernel.BlockSize)
	began := time.Now()
	mayAsk := func(c Creation) bool { return mayAsk(c, age(c)-pause) }
	mayCome := func(c Creation) bool { return time.Since(began) < lateAsk && mayAsk(c) }
	for len(created) > 0 && time.Since(began) < longest {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(quiet.Milliseconds()))
		if err == unix.EINTR || err == nil && n == 0 && slices.ContainsFunc(created, mayCome) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if n, err = unix.Read(fd, request); err != nil {
			return
		}
		var header fuse.InHeader
		if _, err := binary.Decode(request[:n], binary.NativeEndian, &header); err != nil || header.Opcode != opGetAttr {
			continue // it ends with the mount
		}
		by := func(c Creation) bool { return c.Thread == header.Pid && c.Value.Ino == header.NodeId }
		if at := slices.IndexFunc(created, by); at >= 0 && (age(created[at]) < Fresh || mayAsk(created[at])) { // else it is an fstat(2), later
			out := fuse.AttrOut{Attr: created[at].Value} // for this call only: they are as old as the answer
			_, _ = unix.Write(fd, render(header.Unique, &out))
			created = slices.Delete(created, at, at+1)
		}
	}
}

func age(c Creation) time.Duration { return hostinfo.BootTime() - c.At }

// mayAsk tells whether a thread may still be in the open(2) that created something, which is so old, as one is that waits for a processor; some
// time later one does not count that may not be looked at, or whose call has a number that says nothing. What /proc tells of a thread can wait
// for an answer of this mount, if its process executes a program: then the thread is not in an open(2).
func mayAsk(c Creation, age time.Duration) bool {
	if c.Thread == 0 || thread.HasEnded(c.Thread) {
		return false
	}
	isOpening := thread.MayBegin
	if age >= lateAsk {
		isOpening = thread.IsSeenToBegin
	}
	opens := make(chan bool, 1)
	go func() { opens <- isOpening(c.Thread) }()
	select {
	case may := <-opens:
		return may
	case <-time.After(lateAsk):
		return false
	}
}
