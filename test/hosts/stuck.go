package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// threadState returns the state of a thread from its /proc/PID/stat; 0: it has ended. The state follows the
// name, which is in parentheses and may contain any characters.
func threadState(stat string) byte {
	state := strings.TrimSpace(stat[strings.LastIndexByte(stat, ')')+1:])
	if state == "" {
		return 0
	}
	return state[0]
}

// exiting is the flag of a thread that only releases its resources (PF_EXITING), such as files of a mount. It
// does not stop while it waits for the daemon.
const exiting = 0x4

// runs reports whether a thread runs, or may run without being woken. A thread inside an uninterruptible call
// stops on its way out.
func runs(stat string) bool {
	state := threadState(stat)
	return state != 0 && !strings.ContainsRune("TtDZX", rune(state)) && threadFlags(stat)&exiting == 0
}

// threadFlags returns the seventh field after the name (proc_pid_stat(5)).
func threadFlags(stat string) uint64 {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return 0
	}
	flags, _ := strconv.ParseUint(fields[6], 10, 64)
	return flags
}

// readSoon reads a file of /proc with a time limit: it may block for a thread inside execve(2) on a mount.
func readSoon(path string) (text string, read bool) {
	content := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(path)
		content <- string(text)
	}()
	select {
	case text := <-content:
		return text, true
	case <-time.After(Patience / 20):
		return "", false
	}
}

// isStopped reports whether a process has no running thread and at least one stopped one.
func isStopped(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	stopped := false
	for _, stat := range stats {
		text, read := readSoon(stat)
		state := threadState(text)
		if read && runs(text) {
			return false
		}
		stopped = stopped || state == 'T'
	}
	return stopped
}

// stuck returns the kernel stacks of the host's uninterruptible threads.
func (h *Host) stuck() string {
	var said strings.Builder
	for _, pid := range h.pids() {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, stat := range stats {
			text, _ := readSoon(stat)
			if threadState(text) == 'D' {
				stack, _ := readSoon(filepath.Join(filepath.Dir(stat), "stack"))
				fmt.Fprintf(&said, "%s\n%s", text[:strings.LastIndexByte(text, ')')+1], stack)
			}
		}
	}
	if said.Len() == 0 {
		return ""
	}
	return "\nin the kernel, where nothing interrupts them, wait:\n" + said.String()
}

// pids returns the processes of the host's pid namespace, in the numbers of the test process.
func (h *Host) pids() (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, link := range links {
		if namespace, err := os.Readlink(link); err == nil && namespace == h.pidNamespace {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// endMounts ends the mounts used by killed processes of the host that do not end. A killed daemon that
// notifies the kernel of a removal waits for the lock of a directory. A program that waits for the daemon may
// have this lock, so without endMounts neither ends.
func (h *Host) endMounts() error {
	control, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("fsopen", err)
	}
	defer func() { _ = unix.Close(control) }()
	if err := unix.FsconfigCreate(control); err != nil {
		return os.NewSyscallError("fsconfig", err)
	}
	connections, err := unix.Fsmount(control, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fsmount", err)
	}
	defer func() { _ = unix.Close(connections) }()
	others := []uint32{fileSystemOf("/"), fileSystemOf("."), fileSystemOf(h.net.dir)}
	for _, pid := range h.pids() {
		used, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/fd/*", pid))
		for _, path := range append(used, fmt.Sprintf("/proc/%d/cwd", pid)) {
			number := fileSystemOf(path)
			if number == 0 || slices.Contains(others, number) {
				continue
			}
			abort, err := unix.Openat(connections, fmt.Sprintf("%d/abort", number), unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				continue // no FUSE mount, or already ended
			}
			_, _ = unix.Write(abort, []byte("1"))
			_ = unix.Close(abort)
		}
	}
	return nil
}

// fileSystemOf returns the number of the file system of an open file, without asking any other file system;
// 0: on a disk, or unknown.
func fileSystemOf(path string) uint32 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, 0, &st) != nil || st.Dev_major != 0 {
		return 0
	}
	return st.Dev_minor
}
