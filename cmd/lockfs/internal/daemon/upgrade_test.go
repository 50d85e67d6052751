package daemon

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
)

// TestASignalToEndOutlivesAnUpgrade sends SIGTERM to processes that execute another program just then. Either that is told, or it kills.
func TestASignalToEndOutlivesAnUpgrade(t *testing.T) {
	const rounds, step, executing = 600, 500 * time.Nanosecond, "LOCKFS_TEST_EXECUTING"
	if os.Getenv(executing) != "" {
		ctx, stop := cli.UntilSignal(t.Context(), endSignals...)
		defer stop()
		told := make(chan os.Signal, 1)
		signal.Notify(told, endSignals...)
		os.Args = []string{"sh", "-c", `[ "$` + toldToEndVariable + `" ] || exec sleep 60; echo told`}
		_, _ = os.Stdout.WriteString("now\n")
		require.NoError(t, execute(ctx, told, "/bin/sh", nil))
	}
	for round := range rounds {
		process := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$")
		process.Env = append(os.Environ(), executing+"=1")
		stdout, err := process.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, process.Start())
		said := bufio.NewReader(stdout)
		_, err = said.ReadString('\n')
		require.NoError(t, err)
		for began := time.Now(); time.Since(began) < time.Duration(round)*step; {
			runtime.Gosched() // to sleep is not as exact
		}
		require.NoError(t, process.Process.Signal(unix.SIGTERM))
		rest, err := io.ReadAll(said)
		require.NoError(t, err)
		if err := process.Wait(); err != nil {
			require.ErrorContains(t, err, "signal: terminated")
		} else {
			require.Equal(t, "told\n", string(rest))
		}
	}
}
