package pid_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/pid"
)

func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.pid")
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	for _, before := range []string{"", fmt.Sprintln(gone.Process.Pid)} {
		if before != "" {
			require.NoError(t, os.WriteFile(path, []byte(before), 0o644))
		}
		held, err := pid.Hold(t.Context(), path)
		require.NoError(t, err)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintln(os.Getpid()), string(content))

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = pid.Hold(ended, path)
		var blocked *pid.HeldError
		require.ErrorAs(t, err, &blocked)
		require.Equal(t, os.Getpid(), blocked.Lock.PID)
		require.NoError(t, held.Release(t.Context()))
		require.NoFileExists(t, path)
	}
	require.NoError(t, os.WriteFile(path, []byte("half"), 0o644))
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := pid.Hold(ended, path)
	var blocked *pid.HeldError
	require.ErrorAs(t, err, &blocked)
	require.Nil(t, blocked.Lock)
}

// TestHoldWaitsForAProcess, of whose end nothing tells.
func TestHoldWaitsForAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.pid")
	holder := exec.Command("sleep", "60")
	require.NoError(t, holder.Start())
	require.NoError(t, os.WriteFile(path, fmt.Appendln(nil, holder.Process.Pid), 0o644))
	got := make(chan error, 1)
	go func() {
		_, err := pid.Hold(t.Context(), path)
		got <- err
	}()
	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	require.NoError(t, <-got)
}
