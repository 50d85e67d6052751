package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWait(t *testing.T) {
	d := newLockDir(t)
	state := func(done outcome) string {
		t.Helper()
		var w waited
		require.NoError(t, json.Unmarshal([]byte(done.stdout), &w), done.stderr)
		require.Equal(t, d.path, w.File)
		require.Less(t, w.Seconds, 60.0)
		return w.State
	}
	require.Equal(t, outcome{}, d.lockfs("wait LOCK"))
	require.Equal(t, "free", state(d.lockfs("wait LOCK --json --timeout 0s")))
	d.put(semaphoreContent(1, 2*time.Hour))
	require.Equal(t, "stale", state(d.lockfs("wait LOCK --json")))

	d.put(semaphoreContent(1, 0))
	done := d.lockfs("wait LOCK --json --timeout 30ms")
	require.Equal(t, exitTimedOut, done.code)
	require.Equal(t, "held", state(done))
	require.Equal(t, "lockfs: "+d.path+" is held after 30ms; "+removeHint(d.path)+"\n", done.stderr)

	ended := make(chan outcome, 1)
	go func() { ended <- d.lockfs("wait LOCK --json") }()
	require.NoError(t, os.Remove(d.path))
	require.Equal(t, "free", state(<-ended))

	for _, call := range []string{"wait", "wait LOCK --timeout -1s", "wait LOCK --other", "wait LOCK.none/lock"} {
		done := d.lockfs(call)
		require.Equal(t, exitFailed, done.code, call)
		require.NotEmpty(t, done.stderr)
	}
}

func TestWaitIsInterrupted(t *testing.T) {
	d := newLockDir(t)
	d.put("anything")
	cmd := exec.Command(d.program, "wait", d.path)
	cmd.Env = programEnvironment()
	require.NoError(t, cmd.Start())
	awaitWatching(t, cmd)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.True(t, cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(), cmd.ProcessState)
}
