package protocol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"

	"github.com/stretchr/testify/require"
)

func TestWait(t *testing.T) {
	d := newLockDir(t)
	state := func(done clitest.Outcome) string {
		t.Helper()
		w := fieldsOf(t, done.Stdout)
		require.Equal(t, d.path, w["path"])
		require.Less(t, w["waited_seconds"], 60.0)
		return w["state"].(string)
	}
	require.Equal(t, clitest.Outcome{}, d.lockfs("wait LOCK"))
	require.Equal(t, "free", state(d.lockfs("wait LOCK --json --timeout 0s")))
	d.put(semaphoreContent(1, 2*time.Hour))
	require.Equal(t, "stale", state(d.lockfs("wait LOCK --json")))

	d.put(semaphoreContent(1, 0))
	done := d.lockfs("wait LOCK --json --timeout 30ms")
	require.Equal(t, cli.ExitTimedOut, done.Code)
	require.Equal(t, "held", state(done))
	require.Equal(t, "lockfs: "+d.path+" is held after 30ms; "+removeHint(d.path, d.path)+"\n", done.Stderr)

	ended := make(chan clitest.Outcome, 1)
	go func() { ended <- d.lockfs("wait LOCK --json") }()
	require.NoError(t, os.Remove(d.path))
	require.Equal(t, "free", state(<-ended))

	for _, call := range []string{"wait", "wait LOCK --timeout -1s", "wait LOCK --other", "wait LOCK.none/lock"} {
		done := d.lockfs(call)
		require.Equal(t, cli.ExitFailed, done.Code, call)
		require.NotEmpty(t, done.Stderr)
	}
}

// TestWaitForBeads waits for the lock in a database's directory, and advises nobody to remove that.
func TestWaitForBeads(t *testing.T) {
	d := newLockDir(t)
	dir := filepath.Dir(d.path)
	database := filepath.Join(dir, ".beads")
	require.NoError(t, os.Mkdir(database, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(database, "issues.db"), nil, 0o600))
	wait := func(path string) clitest.Outcome {
		return clitest.Execute(t, nil, d.program, "wait", path, "--timeout", "0s")
	}
	require.Equal(t, clitest.Outcome{}, wait(database))
	done := wait(dir)
	require.Equal(t, cli.ExitTimedOut, done.Code)
	require.NotContains(t, done.Stderr, "remove")

	host, err := os.Hostname()
	require.NoError(t, err)
	lock := filepath.Join(database, ".exclusive-lock")
	content := fmt.Sprintf(`{"holder":"me","pid":%d,"hostname":%q,"started_at":"2025-10-25T12:00:00Z"}`, os.Getpid(), host)
	require.NoError(t, os.WriteFile(lock, []byte(content), 0o600))
	for _, path := range []string{database, database + "/", lock} {
		done := wait(path)
		require.Equal(t, cli.ExitTimedOut, done.Code)
		require.Equal(t, "lockfs: "+lock+" is held after 0s; "+removeHint(lock, lock)+"\n", done.Stderr)
	}
	moved := filepath.Join(dir, "renamed")
	require.NoError(t, os.Rename(database, moved))
	require.Contains(t, wait(moved).Stderr, filepath.Join(moved, ".exclusive-lock")+" is held")
}

func TestWaitIsInterrupted(t *testing.T) {
	d := newLockDir(t)
	d.put("anything")
	cmd := exec.Command(d.program, "wait", d.path)
	cmd.Env = clitest.Environment()
	require.NoError(t, cmd.Start())
	awaitWatching(t, cmd)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.True(t, cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(), cmd.ProcessState)
}
