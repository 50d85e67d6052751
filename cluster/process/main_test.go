package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// childEnv tells a process that a test started from its own program what to do instead of testing.
const childEnv = "LOCKFS_TEST_CHILD"

func init() {
	if os.Getenv(childEnv) != "" {
		runtime.LockOSThread() // the main goroutine is the main thread
	}
}

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := runChild(role, os.Args[1:]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runChild does what a role says, prints numbers that tell what it did, and stays until its input ends.
func runChild(role string, args []string) error {
	switch role {
	case "wait":
		fmt.Println(os.Getpid())
	case "named":
		if err := os.WriteFile("/proc/self/comm", []byte(args[0]), 0); err != nil {
			return err
		}
		fmt.Println(os.Getpid())
	case "threads":
		for range others(args) - 1 {
			startThread(func() { select {} })
		}
		startThread(func() {
			fmt.Println(os.Getpid(), unix.Gettid())
			select {}
		})
	case "regroup":
		fmt.Println(os.Getpid())
		_, _ = os.Stdin.Read(make([]byte, 1))
		if err := unix.Setpgid(0, 0); err != nil {
			return err
		}
		fmt.Println(unix.Getpgrp())
	case "leaderless":
		startThread(func() {
			for !zombie(os.Getpid()) {
				runtime.Gosched()
			}
			fmt.Println(os.Getpid(), unix.Gettid())
			waitForEOF()
			os.Exit(0)
		})
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // of this thread only
	case "exec":
		startThread(func() {
			fmt.Println(os.Getpid(), unix.Gettid())
			_, _ = os.Stdin.Read(make([]byte, 1))
			fmt.Println("failed:", unix.Exec("/bin/sh", []string{"sh", "-c", "echo 1; cat"}, os.Environ()))
			os.Exit(1)
		})
		select {}
	case "nest":
		return runWith(unix.CLONE_NEWPID, args[0], args[1:]...)
	case "pair":
		return runWith(0, "wait")
	case "namespace":
		_, err := Namespace()
		_, watcherErr := NewWatcher(func(ID, End) {})
		fmt.Println(err != nil, watcherErr != nil)
	case "namespaces":
		inodes, err := Namespaces(os.Getpid())
		if err != nil {
			return err
		}
		for _, inode := range inodes {
			fmt.Print(inode, " ")
		}
		fmt.Println()
	case "ask":
		return askOnTheMainThread(args[0])
	case "hostname":
		if err := unix.Sethostname([]byte(args[0])); err != nil {
			return err
		}
		fmt.Println(os.Getpid())
	}
	waitForEOF()
	return nil
}

// runWith runs a child of the child, with its input and output.
func runWith(cloneFlags uintptr, role string, args ...string) error {
	command := childCommand(role, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cloneFlags}
	command.Stdin, command.Stdout = os.Stdin, os.Stdout
	return command.Run()
}

// askOnTheMainThread asks for a host name from the main thread, which a new goroutine then mostly comes
// to as well, and tells whether the main thread has stayed where it was.
func askOnTheMainThread(other string) error {
	runtime.UnlockOSThread()
	thread, err := strconv.Atoi(other)
	if err != nil {
		return err
	}
	before, err := os.Readlink("/proc/self/ns/uts")
	if err != nil {
		return err
	}
	for range 100 {
		if _, err := Hostname(thread); err != nil {
			return err
		}
	}
	after, err := os.Readlink("/proc/self/ns/uts")
	fmt.Println(before == after)
	return err
}

// startThread does something on a thread that is not the main one.
func startThread(do func()) {
	go func() {
		runtime.LockOSThread()
		do()
	}()
}

// others is how many threads there are to be beside the main one.
func others(args []string) int {
	if len(args) == 0 {
		return 1
	}
	n, _ := strconv.Atoi(args[0])
	return n
}

func waitForEOF() { _, _ = io.Copy(io.Discard, os.Stdin) }

// zombie tells whether /proc says so of a process.
func zombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func childCommand(role string, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	// The race detector would wait for a second at the end of each.
	command.Env = append(os.Environ(), childEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	return command
}

// program is a process that a test started. It ends with its input, so also with the test.
type program struct {
	*exec.Cmd
	t      testing.TB
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

func start(t testing.TB, command *exec.Cmd) *program {
	t.Helper()
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	command.Stderr = os.Stderr
	require.NoError(t, command.Start())
	p := &program{command, t, stdin, bufio.NewReader(stdout)}
	t.Cleanup(p.end)
	return p
}

// startChild starts this program in a role, in new namespaces if there are clone flags.
func startChild(t testing.TB, cloneFlags uintptr, role string, args ...string) *program {
	t.Helper()
	command := childCommand(role, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cloneFlags}
	return start(t, command)
}

func (p *program) pid() int { return p.Process.Pid }

// id comes from reading /proc as a whole, unlike what is tested.
func (p *program) id() ID {
	p.t.Helper()
	return idOf(p.t, p.pid())
}

func idOf(t testing.TB, pid int) ID {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	start, err := strconv.ParseUint(fields[19], 10, 64)
	require.NoError(t, err)
	return ID{pid, start}
}

// numbers waits for a line and answers what it says.
func (p *program) numbers() []int {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	require.NoError(p.t, err, line)
	var numbers []int
	for field := range strings.FieldsSeq(line) {
		number, err := strconv.Atoi(field)
		require.NoError(p.t, err, line)
		numbers = append(numbers, number)
	}
	return numbers
}

// kill ends a process that becomes a zombie, which end then removes.
func (p *program) kill() {
	p.t.Helper()
	require.NoError(p.t, p.Process.Kill())
	var info unix.Siginfo
	require.NoError(p.t, unix.Waitid(unix.P_PID, p.pid(), &info, unix.WEXITED|unix.WNOWAIT, nil))
}

// end lets a process end, if it has not yet, and those that it started before it.
func (p *program) end() {
	if p.ProcessState != nil {
		return
	}
	_ = p.stdin.Close()
	stuck := time.AfterFunc(20*time.Second, func() { _ = p.Process.Kill() })
	_ = p.Wait()
	stuck.Stop()
}

// onlyChild waits for the first child of a process.
func onlyChild(t testing.TB, parent int) (child int) {
	t.Helper()
	eventually(t, func() bool {
		found := Children(parent)
		if len(found) > 0 {
			child = found[0]
		}
		return len(found) > 0
	})
	return child
}

// eventually waits for a condition.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, time.Millisecond)
}

// descriptors answers how many are open here.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// of answers the process that a thread belongs to.
func of(thread int) (ID, error) {
	s, err := statOf(thread)
	return s.ID, err
}
