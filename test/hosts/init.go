package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initVariable makes the test binary a host's init; it holds the host's name.
const initVariable = "LOCKFS_TEST_HOST_INIT"

// Main is for the begin of TestMain. In the test process it returns at once. In the init process of a host it
// does not return.
func Main() {
	name := os.Getenv(initVariable)
	if name == "" {
		return
	}
	control, replies := os.NewFile(3, "control"), os.NewFile(4, "replies")
	if err := beInit(name, control, replies); err != nil {
		fmt.Fprintln(replies, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// beInit sets the host up and serves it until control is closed. This happens at the end of the test process
// in any case.
func beInit(name string, control io.Reader, replies io.Writer) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := mountOwn(socketDir); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	go reapOrphans()
	fmt.Fprintln(replies, replyDone)

	commands := bufio.NewScanner(control)
	for commands.Scan() {
		if err := obey(commands.Text()); err != nil {
			fmt.Fprintln(replies, err)
			continue
		}
		fmt.Fprintln(replies, replyDone)
	}
	return nil
}

// socketDir has the sockets of a host's daemons, private to the host.
const socketDir = "/run/lockfs"

// mountOwn gives the host a private directory.
func mountOwn(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	return nil
}

const (
	commandFreeze = "freeze"
	commandThaw   = "thaw"
	replyDone     = "done"
)

func obey(command string) error {
	switch command {
	case commandFreeze:
		return stopAll()
	case commandThaw:
		if err := unix.Kill(-1, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil
	}
	return fmt.Errorf("unknown command %q", command)
}

// stopAll waits until all threads of the host except init's are stopped. A thread inside an uninterruptible
// call, such as a request to a mount with a stopped daemon, stops on its way out. stopAll also stops
// processes started meanwhile.
func stopAll() error {
	var running string
	waiting := make(map[string]bool)
	for deadline := time.Now().Add(Patience / 2); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err := unix.Kill(-1, unix.SIGSTOP); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if running = runningThread(waiting); running == "" {
			return nil
		}
		// If the first thread of a process is inside such a call, another thread is stopped.
		var process, thread int
		if _, err := fmt.Sscanf(running, "/proc/%d/task/%d/", &process, &thread); err == nil {
			_ = unix.Tgkill(process, thread, unix.SIGSTOP)
		}
	}
	return fmt.Errorf("does not stop: %s", running)
}

// runningThread returns a running thread. waiting has the threads with an unreadable state, such as those
// inside execve(2) on a mount with a stopped daemon.
func runningThread(waiting map[string]bool) string {
	stats, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat")
	for _, stat := range stats {
		if strings.HasPrefix(stat, "/proc/1/") || waiting[stat] {
			continue
		}
		text, read := readSoon(stat)
		if !read {
			waiting[stat] = true
			continue
		}
		if runs(text) {
			return stat + ": " + text
		}
	}
	return ""
}

func reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for range ended {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}

// initProcess is a host's init, for the test process.
type initProcess struct {
	cmd     *exec.Cmd
	control *os.File
	replies *bufio.Reader
	pipe    *os.File
}

func startInit(name string) (*initProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	controlRead, controlWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer controlRead.Close()
	repliesRead, repliesWrite, err := os.Pipe()
	if err != nil {
		controlWrite.Close()
		return nil, err
	}
	defer repliesWrite.Close()

	cmd := exec.Command(program)
	// A program built with -race would sleep for a second before its exit.
	cmd.Env = []string{initVariable + "=" + name, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{controlRead, repliesWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS,
	}
	i := &initProcess{cmd: cmd, control: controlWrite, replies: bufio.NewReader(repliesRead), pipe: repliesRead}
	if err := cmd.Start(); err != nil {
		controlWrite.Close()
		repliesRead.Close()
		return nil, fmt.Errorf("start init: %w", err)
	}
	if err := i.reply(); err != nil {
		return nil, errors.Join(fmt.Errorf("init: %w (does TestMain call hosts.Main?)", err), i.end())
	}
	return i, nil
}

func (i *initProcess) pid() int { return i.cmd.Process.Pid }

// command sends a command to init and waits until it is done.
func (i *initProcess) command(command string) error {
	if _, err := fmt.Fprintln(i.control, command); err != nil {
		return err
	}
	return i.reply()
}

func (i *initProcess) reply() error {
	if err := i.pipe.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	line, err := i.replies.ReadString('\n')
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if line = strings.TrimSuffix(line, "\n"); line != replyDone {
		return errors.New(line)
	}
	return nil
}

// end ends init and waits for it, and so for all processes of the host.
func (i *initProcess) end() error {
	i.control.Close()
	defer i.pipe.Close()
	ended := make(chan error, 1)
	go func() { ended <- i.cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(Patience):
		return fmt.Errorf("init (pid %d) is still there", i.pid())
	}
}
