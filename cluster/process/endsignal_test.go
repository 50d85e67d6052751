package process

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestEndSignal(t *testing.T) {
	for _, want := range []unix.Signal{unix.SIGTERM, unix.SIGKILL, 0} {
		cmd := exec.Command("sh", "-c", `read _`)
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
		require.NoError(t, err)
		pidfd := os.NewFile(uintptr(fd), "process")
		require.Zero(t, EndSignal(pidfd, 0), "it lives")
		if want != 0 {
			require.NoError(t, cmd.Process.Signal(want))
		}
		require.NoError(t, stdin.Close())
		require.NoError(t, waitFor(pidfd))
		require.Zero(t, EndSignal(pidfd, 0), "nobody has taken note of it")
		told := make(chan unix.Signal)
		go func() { told <- EndSignal(pidfd, time.Minute) }()
		_ = cmd.Wait()
		require.Equal(t, want, <-told)
		require.NoError(t, pidfd.Close())
	}
	own := OwnPidfd()
	require.Zero(t, EndSignal(own, 0))
	require.NoError(t, own.Close())
}

// waitFor waits for the end of a process.
func waitFor(pidfd *os.File) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}, -1)
	return err
}
