package worker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/cluster/process"
)

const asProgram = "LOCKFS_TEST_AS_PROGRAM"

// init makes this program a front, and what that starts its worker.
func init() {
	if os.Getenv(asProgram) == "" {
		return
	}
	w := Current()
	if w == nil {
		os.Exit(Run("lockfs", strings.HasPrefix(os.Args[1], "run")))
	}
	fmt.Println("begun")
	switch os.Args[1] {
	case "exit":
		w.Exit(7)
	case "end": // without a word
		w.Waits(time.Hour, 76)
		os.Exit(7)
	case "caller":
		fmt.Println(CallerPID())
		w.Exit(0)
	case "hang": // as in the kernel: no signal ends it
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println("hangs")
		<-w.Gone()
		_ = os.WriteFile(os.Args[2], fmt.Append(nil, w.Keep()), 0o600)
		w.Exit(0)
	case "wait":
		w.Waits(time.Millisecond, 76)
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("hangs")
		<-w.Gone()
		w.Exit(0)
	case "run", "run-in-time":
		if os.Args[1] == "run-in-time" {
			w.Waits(time.Nanosecond, 76)
		}
		w.Runs()
		command := exec.Command("sleep", "600")
		_ = command.Start()
		fmt.Println("hangs")
		select {}
	case "keep":
		fmt.Println(w.Keep())
		w.Exit(0)
	default:
		fmt.Println("hangs")
		select {}
	}
}

type program struct {
	*exec.Cmd
	out, stderr bytes.Buffer
}

func start(t *testing.T, args ...string) *program {
	p := &program{Cmd: exec.Command(os.Args[0], args...)}
	p.Env, p.Stderr = append(os.Environ(), asProgram+"=1"), &p.stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	for !strings.HasSuffix(p.out.String(), "hangs\n") {
		var some [64]byte
		n, err := out.Read(some[:])
		p.out.Write(some[:n])
		if err != nil {
			break
		}
	}
	return p
}

func (p *program) end(t *testing.T, code int, said string) {
	t.Helper()
	_ = p.Wait()
	require.Equal(t, code, p.ProcessState.ExitCode(), p.stderr.String())
	require.Contains(t, p.stderr.String(), said)
}

func TestTheFrontEndsAsItsWorker(t *testing.T) {
	start(t, "exit").end(t, 7, "")
	for range 20 { // which of the worker's end and its messages the front notices first is a matter of luck
		start(t, "end").end(t, 7, "")
	}
	caller := start(t, "caller")
	caller.end(t, 0, "")
	require.Equal(t, fmt.Sprintf("begun\n%d\n", os.Getpid()), caller.out.String())
	keeps := start(t, "keep")
	keeps.end(t, 0, "")
	require.Equal(t, "begun\n<nil>\n", keeps.out.String())

	told := start(t, "default")
	require.NoError(t, told.Process.Signal(syscall.SIGTERM))
	_ = told.Wait()
	require.Equal(t, syscall.SIGTERM, told.ProcessState.Sys().(syscall.WaitStatus).Signal(), "as by default")
}

// TestTheFrontEndsWithoutItsWorker, which learns of that, and that it may keep no lock.
func TestTheFrontEndsWithoutItsWorker(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		file := t.TempDir() + "/kept"
		hangs := start(t, "hang", file)
		require.NoError(t, hangs.Process.Signal(s))
		if s == syscall.SIGTERM {
			hangs.end(t, exitSignal+int(s), "interrupted by signal: terminated: the file system does not respond; a lock acquired later is released")
		}
		require.Eventually(t, func() bool {
			content, _ := os.ReadFile(file)
			return string(content) == ErrNoFront.Error()
		}, time.Minute, 5*time.Millisecond)
	}
}

// TestTheFrontEndsWithoutAWorkerThatWaitsForTooLong, with the exit code that the worker gave it for that.
func TestTheFrontEndsWithoutAWorkerThatWaitsForTooLong(t *testing.T) {
	waits := start(t, "wait")
	began := time.Now()
	waits.end(t, 76, "lockfs: the wait of 1ms is over, and the file system does not respond; a lock acquired later is released")
	require.GreaterOrEqual(t, time.Since(began), Grace-time.Second)
}

// TestTheFrontKillsWhatItsWorkerLeaves if that is killed. The limit of a wait does not count any more while the command runs.
func TestTheFrontKillsWhatItsWorkerLeaves(t *testing.T) {
	f := &front{late: time.After(0)}
	f.hear(report{message: running})
	require.Nil(t, f.late)
	front := start(t, "run-in-time")
	processes := process.Descendants(front.Process.Pid)
	require.Len(t, processes, 2)
	require.NotEmpty(t, process.MarkOf(processes[0]))
	require.True(t, process.IsMarked(processes[1], process.MarkOf(processes[0])))
	require.NoError(t, unix.Kill(processes[0], unix.SIGKILL))
	front.end(t, exitSignal+int(unix.SIGKILL), "lockfs killed the command")
	require.True(t, unix.Kill(processes[1], 0) != nil || process.Exiting(processes[1]))
}
