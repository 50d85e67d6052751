package orphanreply

import (
	"encoding/binary"
	"os"
	"slices"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/hostinfo"
)

// Fresh is the age up to which the open(2) of an answer may be under way, also during a takeover.
const Fresh = 3 * time.Second

const (
	opGetAttr    = 3 // FUSE_GETATTR
	notifyResend = 7 // FUSE_NOTIFY_RESEND, Linux 6.9

	// quiet is how long the kernel may take to send requests again.
	quiet = 20 * time.Millisecond
	// oldAnswer is the age up to which an answer counts for a thread seen in such a call: the host may have
	// paused.
	oldAnswer = time.Minute
	// lateAsk is how long to wait for a thread which may be in its open(2). longest limits the whole of
	// answerAttributes.
	lateAsk = time.Second
	longest = 5 * time.Second
)

// Finish writes the answers of a mount's dead or exiting process to the kernel. The kernel refuses those
// which it already has, which is usual.
//
// An open(2) with a creation is two requests: after CREATE, the kernel asks for the attributes to check
// permissions. After a crash between the two, the file would exist and the program would get an error. So
// Finish also answers the attributes, to the thread still in this call. Linux before 6.9 cannot repeat a
// request already read; there this gap remains.
func Finish(device *os.File, answers [][]byte) { FinishAfter(0, device, answers) }

// FinishAfter is Finish after a wait for a process to take over the mount. The pause does not count in the
// age of answers, as no program got answers meanwhile.
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

// Tell is Finish for a mount with a next process, which answers the requests after a creation (see
// Creations).
func Tell(device *os.File, answers [][]byte) {
	for _, answer := range answers {
		if len(answer) >= answerReply {
			_, _ = unix.Write(int(device.Fd()), answer[answerReply:])
		}
	}
}

// AskAgain makes the kernel send the requests of an ended process again. It returns EINVAL before Linux 6.9;
// their callers then wait until the end of the mount.
func AskAgain(device *os.File) error {
	resend, err := binary.Append(nil, binary.NativeEndian, fuse.OutHeader{
		Length: uint32(binary.Size(fuse.OutHeader{})), Status: notifyResend,
	})
	if err == nil {
		_, err = unix.Write(int(device.Fd()), resend)
	}
	return os.NewSyscallError("write", err)
}

// Creation is the attributes in the answer of an open(2) which may be under way, as its thread has made no
// later request.
type Creation = thread.Saved[fuse.Attr]

// Creations returns the creations in answers.
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

// answerAttributes answers the threads asking for the attributes of their creations, until no more can come
// or the time limit.
func answerAttributes(pause time.Duration, device *os.File, created []Creation) {
	_ = AskAgain(device)
	fd := int(device.Fd())
	if unix.SetNonblock(fd, true) != nil {
		return
	}
	request := make([]byte, fuseattr.MaxWrite+fuseattr.BlockSize)
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
		// Later requests are of fstat(2).
		if at := slices.IndexFunc(created, by); at >= 0 && (age(created[at]) < Fresh || mayAsk(created[at])) {
			out := fuse.AttrOut{Attr: created[at].Value} // for this call only: they may be outdated
			_, _ = unix.Write(fd, render(header.Unique, &out))
			created = slices.Delete(created, at, at+1)
		}
	}
}

func age(c Creation) time.Duration { return hostinfo.BootTime() - c.At }

// mayAsk reports whether a thread may still be in the open(2) of an old creation, for example waiting for a
// processor. After lateAsk it returns false for a thread which this process may not inspect, or with an
// inconclusive call number. Reading /proc may wait for this mount if the thread's process executes a program:
// then the thread is not in an open(2).
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
