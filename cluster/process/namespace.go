package process

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/hostinfo"
)

// Namespace answers the inode number of the pid namespace of this process. It is an error if /proc is
// another namespace's: whatever was read there would be of other processes than those that are meant.
func Namespace() (uint64, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return 0, fmt.Errorf("/proc is not that of this process's pid namespace (/proc/self is %q, the pid is %d)", self, os.Getpid())
	}
	return hostinfo.PIDNamespace()
}

// NamespaceOf answers the inode number of the pid namespace that a thread is in. It is ErrUnknown if the thread cannot
// be seen, or its namespace cannot be looked at.
func NamespaceOf(thread int) (uint64, error) {
	return cached(thread, func(r *procEntry) *atomic.Pointer[uint64] { return &r.namespace }, readNamespace)
}

func readNamespace(thread int) (uint64, error) {
	path := "/proc/" + strconv.Itoa(thread) + "/ns/pid"
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if errors.Is(err, unix.EACCES) {
		// Another user's is not shown, but anybody may read how many pids it has: one is that in our namespace.
		if pids, err := readPIDs(thread); err == nil && len(pids) == 1 {
			return Namespace()
		}
	}
	if err != nil {
		return 0, procError("stat", path, err)
	}
	return st.Ino, nil
}

// Namespaces answers the inode numbers of the pid namespaces that a thread is in: its own first, and then each that the
// one before is nested in, as far up as can be seen, which is up to ours. Its errors are those of NamespaceOf.
func Namespaces(thread int) ([]uint64, error) {
	inodes, err := cached(thread, func(r *procEntry) *atomic.Pointer[[]uint64] { return &r.namespaces }, readNamespaces)
	return slices.Clone(inodes), err
}

func readNamespaces(thread int) ([]uint64, error) {
	namespace, err := openNamespace(thread, "pid")
	var inodes []uint64
	for err == nil {
		inodes = append(inodes, namespace.inode)
		namespace, err = namespace.parent()
	}
	if len(inodes) > 0 && errors.Is(err, unix.EPERM) { // of those that contain ours the kernel tells nothing
		return inodes, nil
	}
	return nil, err
}

// Find answers the process that a thread means by a pid, which is one in that thread's pid namespace. It is
// ErrUnknown for a process that has ended, waited for or not, and for a thread's id; also when the calling
// thread cannot be seen (0), or its namespace cannot be looked into.
func Find(caller, pid int) (ID, error) { return find(caller, pid, candidates) }

// find looks among the candidates, if the caller's namespace is not ours.
func find(caller, pid int, candidates func(caller stat) iter.Seq[int]) (ID, error) {
	if caller <= 0 || pid <= 0 || pid > math.MaxInt32 {
		return ID{}, ErrUnknown
	}
	depth, err := cached(caller, func(r *procEntry) *atomic.Pointer[int] { return &r.depth }, readDepth)
	if err != nil {
		return ID{}, err
	}
	if depth > 1 {
		return findNested(caller, pid, candidates)
	}
	_, s, err := table.find(pid)
	return s.ID, err
}

// readDepth answers how many pid namespaces a thread has a pid in, from ours on. So it is 1 only if its own is ours.
func readDepth(thread int) (int, error) {
	pids, err := readPIDs(thread)
	return len(pids), err
}

// readPIDs answers the pids of a process or thread: the one in our namespace first, the one in its own last.
func readPIDs(thread int) ([]int, error) {
	path := "/proc/" + strconv.Itoa(thread) + "/status"
	status, err := os.ReadFile(path) // the list of groups, which comes before them, can be of any length
	if err != nil {
		return nil, procError("read", path, err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(statusField(status, "NSpid"))) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// findNested finds a process by its pid in a caller's namespace, which is nested in ours.
func findNested(caller, pid int, candidates func(caller stat) iter.Seq[int]) (ID, error) {
	namespace, err := openNamespace(caller, "pid")
	if err != nil {
		return ID{}, err
	}
	defer func() { _ = unix.Close(namespace.fd) }() // its inode number is not given to another one before
	own, err := statOf(caller)
	if err != nil {
		return ID{}, err
	}
	for candidate := range candidates(own) {
		if !isCalled(candidate, pid, namespace.inode) {
			continue
		}
		s, pidfd, err := identify(candidate)
		if err != nil {
			return ID{}, err
		}
		defer func() { _ = unix.Close(pidfd) }()
		// Once more: now it is sure whose answer that is.
		if !isCalled(candidate, pid, namespace.inode) {
			return ID{}, errEnded
		}
		return s.ID, checkRunning(pidfd)
	}
	return ID{}, ErrUnknown
}

// candidates are the caller's process and its ancestors first, since a lock mostly has the pid of one of
// them, and then all processes.
func candidates(caller stat) iter.Seq[int] {
	return func(yield func(int) bool) {
		for relative := range caller.ancestors() {
			if !yield(relative.PID) {
				return
			}
		}
		proc, err := os.Open("/proc")
		if err != nil {
			return
		}
		defer func() { _ = proc.Close() }()
		names, _ := proc.Readdirnames(-1)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && !yield(pid) {
				return
			}
		}
	}
}

// isCalled tells whether a process has a pid in the namespace with an inode number: its own, or one that its
// own is nested in.
func isCalled(process, pid int, inode uint64) bool {
	pids, err := readPIDs(process)
	if err != nil || len(pids) < 2 || !slices.Contains(pids[1:], pid) {
		return false
	}
	namespace, err := openNamespace(process, "pid")
	for level := len(pids) - 1; err == nil; level-- {
		if namespace.inode == inode || level == 1 {
			_ = unix.Close(namespace.fd)
			return namespace.inode == inode && pids[level] == pid
		}
		namespace, err = namespace.parent()
	}
	return false
}

// namespace is an open namespace, of any kind.
type namespace struct {
	fd    int
	inode uint64
}

// openNamespace opens the namespace that a thread is in.
func openNamespace(thread int, kind string) (namespace, error) {
	path := "/proc/" + strconv.Itoa(thread) + "/ns/" + kind
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return namespace{}, procError("open", path, err)
	}
	return newNamespace(fd)
}

func newNamespace(fd int) (namespace, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return namespace{}, os.NewSyscallError("fstat", err)
	}
	return namespace{fd, st.Ino}, nil
}

// parent opens the one that a namespace is nested in, and closes the namespace.
func (n namespace) parent() (namespace, error) {
	fd, err := unix.IoctlRetInt(n.fd, unix.NS_GET_PARENT)
	_ = unix.Close(n.fd)
	if err != nil {
		return namespace{}, os.NewSyscallError("ioctl NS_GET_PARENT", err)
	}
	return newNamespace(fd)
}
