package process

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// exits listens to the kernel's process connector. Before Linux 6.15, it reports exit statuses which pidfds
// lack. It serves root in the initial namespaces only (CAP_NET_ADMIN; user, pid and network namespace), so
// mostly not in containers.
//
// The kernel queues the message right after the process's pidfd becomes readable, so the watcher waits for
// it.
type exits struct {
	socket int

	mu   sync.Mutex
	ends map[int]*End // of the watched processes, by pid; nil: none yet
}

// From linux/connector.h and linux/cn_proc.h.
const (
	connectorIndex = 1 // CN_IDX_PROC
	connectorValue = 1 // CN_VAL_PROC
	listen         = 1 // PROC_CN_MCAST_LISTEN
	eventNone      = 0 // PROC_EVENT_NONE: the reply to listen
	eventExit      = 0x80000000

	netlinkHeader   = 16
	connectorHeader = 20
	eventHeader     = 16 // of a process event: what, cpu, time
	exitsBuffer     = 4 << 20
	exitsAnswer     = time.Second
)

// pidfdsTell reports whether pidfds report exit statuses (PIDFD_INFO_EXIT).
var pidfdsTell = sync.OnceValue(func() bool {
	own, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(own) }()
	_, tells := statusOf(own)
	return tells && kernelIs(6, 15)
})

// kernelIs reports whether the kernel has a version, or a newer one.
func kernelIs(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	return isRelease(unix.ByteSliceToString(name.Release[:]), major, minor)
}

func isRelease(release string, major, minor int) bool {
	first, rest, _ := strings.Cut(release, ".")
	second := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		second = rest[:end]
	}
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}

// listenToExits returns nil if the kernel does not serve this process.
func listenToExits() *exits {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_CONNECTOR)
	if err != nil {
		return nil
	}
	_ = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, exitsBuffer) // else the default size
	x := &exits{socket: socket, ends: make(map[int]*End)}
	if unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: connectorIndex}) != nil ||
		unix.Sendto(socket, listenMessage(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil ||
		!x.isAnswered() || x.onlyExits() != nil {
		_ = unix.Close(socket)
		return nil
	}
	return x
}

func listenMessage() []byte {
	order := binary.NativeEndian
	m := order.AppendUint32(nil, netlinkHeader+connectorHeader+4)
	m = order.AppendUint16(m, unix.NLMSG_DONE)
	m = order.AppendUint16(m, 0)
	m = order.AppendUint32(m, 0)
	m = order.AppendUint32(m, 0)
	m = order.AppendUint32(m, connectorIndex)
	m = order.AppendUint32(m, connectorValue)
	m = order.AppendUint32(m, 0)
	m = order.AppendUint32(m, 0)
	m = order.AppendUint16(m, 4)
	m = order.AppendUint16(m, 0)
	return order.AppendUint32(m, listen)
}

// isAnswered waits for the kernel's reply. In other namespaces it never comes.
func (x *exits) isAnswered() bool {
	deadline := time.Now().Add(exitsAnswer)
	buffer := make([]byte, 4096)
	for {
		n, _, err := unix.Recvfrom(x.socket, buffer, 0)
		switch {
		case err == nil:
			if what, event := eventIn(buffer[:n]); what == eventNone && len(event) >= eventHeader+4 {
				return binary.NativeEndian.Uint32(event[eventHeader:]) == 0
			}
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOBUFS):
		case errors.Is(err, unix.EAGAIN):
			left := time.Until(deadline).Milliseconds()
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(x.socket), Events: unix.POLLIN}}, max(0, int(left))); err != unix.EINTR && n == 0 {
				return false
			}
		default:
			return false
		}
	}
}

// onlyExits makes the kernel drop all other events, such as forks and execs.
func (x *exits) onlyExits() error {
	var exit [4]byte
	binary.NativeEndian.PutUint32(exit[:], eventExit)
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: netlinkHeader + connectorHeader}, // in network order
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: binary.BigEndian.Uint32(exit[:]), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.SetsockoptSockFprog(x.socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
}

// eventIn returns the process event in a message; nil: none.
func eventIn(message []byte) (what uint32, event []byte) {
	if len(message) < netlinkHeader+connectorHeader+eventHeader {
		return 0, nil
	}
	event = message[netlinkHeader+connectorHeader:]
	return binary.NativeEndian.Uint32(event), event
}

// begin starts to record the end of a process.
func (x *exits) begin(pid int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ends[pid] = nil
}

func (x *exits) end(pid int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.ends, pid)
}

// of returns how a process ended, after its pidfd has become readable.
func (x *exits) of(pid int) End {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.read()
	if end := x.ends[pid]; end != nil {
		return *end
	}
	return End{}
}

// drain reads all messages, to free the buffer.
func (x *exits) drain() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.read()
}

// read reads all messages. After a loss, a recorded exit may be of a single thread, and is forgotten. The
// caller holds the mutex.
func (x *exits) read() {
	buffer := make([]byte, 4096)
	lost := false
	defer func() {
		if lost {
			x.forgetExits()
		}
	}()
	for {
		n, _, err := unix.Recvfrom(x.socket, buffer, 0)
		switch {
		case err == nil:
			x.note(buffer[:n])
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS):
			lost = true
		default:
			return
		}
	}
}

func (x *exits) forgetExits() {
	for pid, end := range x.ends {
		if end != nil && !end.Status.Signaled() {
			x.ends[pid] = nil
		}
	}
}

// note records the end of a thread. A signal to end one thread ends the process. A thread which exits with
// its process has the process's status.
func (x *exits) note(message []byte) {
	what, event := eventIn(message)
	const process, status = eventHeader + 4, eventHeader + 8
	if what != eventExit || len(event) < status+4 {
		return
	}
	pid := int(binary.NativeEndian.Uint32(event[process:]))
	before, watched := x.ends[pid]
	if !watched || before != nil && before.Status.Signaled() {
		return
	}
	x.ends[pid] = &End{Known: true, Status: unix.WaitStatus(binary.NativeEndian.Uint32(event[status:]))}
}

func (x *exits) close() { _ = unix.Close(x.socket) }
