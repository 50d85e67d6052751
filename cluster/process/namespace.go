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

// Namespace returns the inode number of this process's pid namespace. It returns an error if /proc
// belongs to another namespace, and so shows other processes.
func Namespace() (uint64, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return 0, fmt.Errorf("/proc is not that of this process's pid namespace (/proc/self is %q, the pid is %d)", self, os.Getpid())
	}
	return hostinfo.PIDNamespace()
}

// NamespaceOf returns the inode number of a thread's pid namespace. It is ErrUnknown if the thread or its
// namespace cannot be read.
func NamespaceOf(thread int) (uint64, error) {
	return cached(thread, func(r *procEntry) *atomic.Pointer[uint64] { return &r.namespace }, readNamespace)
}

func readNamespace(thread int) (uint64, error) {
	path := "/proc/" + strconv.Itoa(thread) + "/ns/pid"
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if errors.Is(err, unix.EACCES) {
		// The namespace of another user's thread is hidden, but not the number of its pids: a single one
		// is in our namespace.
		if pids, err := readPIDs(thread); err == nil && len(pids) == 1 {
			return Namespace()
		}
	}
	if err != nil {
		return 0, procError("stat", path, err)
	}
	return st.Ino, nil
}

// Namespaces returns the inode numbers of a thread's pid namespaces: its own first, and then each outer
// one up to ours. Its errors are those of NamespaceOf.
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
	if len(inodes) > 0 && errors.Is(err, unix.EPERM) { // the kernel hides the namespaces outside ours
		return inodes, nil
	}
	return nil, err
}

// Find returns the process for a pid in a thread's own pid namespace. It returns ErrUnknown for an ended
// process, a zombie, or the id of a thread. It also returns ErrUnknown if the calling thread (0) or its
// namespace cannot be read.
func Find(caller, pid int) (ID, error) { return find(caller, pid, candidates) }

// find searches the candidates, if the caller's namespace is not ours.
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

// readDepth returns the number of pid namespaces in which a thread has a pid, from ours on; 1: only ours.
func readDepth(thread int) (int, error) {
	pids, err := readPIDs(thread)
	return len(pids), err
}

// readPIDs returns the pids of a process or thread: the one in our namespace first, its own last.
func readPIDs(thread int) ([]int, error) {
	path := "/proc/" + strconv.Itoa(thread) + "/status"
	status, err := os.ReadFile(path) // the list of groups before them can be of any length
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

// findNested finds a process by its pid in a namespace below ours.
func findNested(caller, pid int, candidates func(caller stat) iter.Seq[int]) (ID, error) {
	namespace, err := openNamespace(caller, "pid")
	if err != nil {
		return ID{}, err
	}
	defer func() { _ = unix.Close(namespace.fd) }() // keeps its inode number from being reused
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
		// again, now with a live process
		if !isCalled(candidate, pid, namespace.inode) {
			return ID{}, errEnded
		}
		return s.ID, checkRunning(pidfd)
	}
	return ID{}, ErrUnknown
}

// candidates returns the caller's process and its ancestors first, since a lock mostly has a pid of
// these, and then all processes.
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

// isCalled reports whether a process has a pid in a namespace: its own, or an outer one.
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

// namespace is an open namespace of any kind.
type namespace struct {
	fd    int
	inode uint64
}

// openNamespace opens a thread's namespace.
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

// parent opens the outer namespace and closes this one.
func (n namespace) parent() (namespace, error) {
	fd, err := unix.IoctlRetInt(n.fd, unix.NS_GET_PARENT)
	_ = unix.Close(n.fd)
	if err != nil {
		return namespace{}, os.NewSyscallError("ioctl NS_GET_PARENT", err)
	}
	return newNamespace(fd)
}
