package protocol

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/swarm"
)

// TestWaitingIsTold: who waits for a lock in a plain directory is told once for whom and why, and how that ends, as text and
// as JSON.
func TestWaitingIsTold(t *testing.T) {
	dir, run := locksOfOthers(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "locks", "empty"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "slots"), 0o700))
	for _, slot := range []string{"slot-1.lock", "slot-2.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "slots", slot), []byte("1\n"), 0o600))
	}
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "slots", "slot-2.lock"), old, old))
	require.Equal(t, 0, run("tower acquire old --request-id r --intent i --intent-version 1 --ttl 2").Code)
	makeOld(t, filepath.Join(dir, "locks", "old.lock"))

	const request, forEmpty = " --request-id o --intent i --intent-version 1", `empty since \S+Z: its creator may have crashed; if its holder is gone: `
	for call, line := range map[string]string{
		"semaphore acquire DIR/locks/semaphore --timeout 3s": `DIR/locks/semaphore: held by process 4194304 for \d+s; ` +
			`stale at \S+ unless it is renewed; if its holder is gone: .rm DIR/locks/semaphore.`,
		"semaphore run DIR/locks/empty --timeout 3s -- true": `DIR/locks/empty: held for \d+s; ` + forEmpty + `.rm DIR/locks/empty.`,
		"tower acquire tower --wait 3s" + request: `DIR/locks/tower.lock: held by r \(process \d+\) on HOST for \d+s; ` +
			`stale at \S+ unless it is renewed; if its holder is gone: .rm DIR/locks/tower.lock.`,
		"tower run old --wait 3s --intent i --intent-version 1 -- true": `DIR/locks/old.lock: held by r \(process \d+\) on HOST ` +
			`for \S+; stale since \S+, but tower needs --force-lock; if its holder is gone: .lockfs tower run --force-lock.`,
		"run --format tower DIR/locks/old.lock --wait 3s -- true": `DIR/locks/old.lock: .*but tower needs --force-lock; ` +
			`if its holder is gone: .lockfs run --force-lock.`,
		"run --format swarm DIR/locks/swarm.lock --wait 3s -- true": `DIR/locks/swarm.lock: held by v for \S+; it never expires; ` +
			`if its holder is gone: .rm DIR/locks/swarm.lock.`,
		"beads run DIR/beads --holder me --wait 3s -- true": `DIR/beads/.exclusive-lock: held by them \(process 1\) on HOST for \S+; ` +
			`held for as long as its process 1 lives; if its holder is gone: .rm DIR/beads/.exclusive-lock.`,
		"run --format pid DIR/locks/pid --wait 3s -- true": `DIR/locks/pid: held by process 1 for \d+s; held for as long as its ` +
			`process 1 lives; if its holder is gone: .rm DIR/locks/pid.`,
		"run --format pid --once-per 1h DIR/slots/slot-1 --wait 6s -- true": `DIR/slots/slot-1.lock: held by process 1 .*; if its holder is gone: ` +
			`.rm DIR/slots/slot-1.lock.`,
		"run --format pid --slots 2 DIR/slots --wait 3s -- true": `DIR/slots/slot-2.lock: held by process 1 for 1h0m\d+s; .*; ` +
			`all 2 slots are held, this one for longest; if its holder is gone: .rm DIR/slots/slot-2.lock.`,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			line := "lockfs: waiting for " + strings.NewReplacer("DIR", dir, "HOST", host).Replace(line)
			done := run(call)
			require.Equal(t, cli.ExitTimedOut, done.Code, done.Stderr)
			require.Regexp(t, "(?m)^"+line, done.Stderr)
			require.Equal(t, 1, strings.Count(done.Stderr, "waiting for"), done.Stderr)

			verb, command, found := strings.Cut(call, " -- ")
			if verb += " --json"; found {
				verb += " -- " + command
			}
			var told map[string]any
			for line := range strings.Lines(run(verb).Stderr) {
				if strings.HasPrefix(line, "{") {
					require.Nil(t, told, "once")
					told = fieldsOf(t, line)
				}
			}
			require.Equal(t, "waiting", told["outcome"])
			require.Contains(t, line, told["remedy"])
			for _, field := range []string{"path", "state", "format", "acquired", "age_seconds", "reason"} {
				require.Contains(t, told, field)
			}
		})
	}
}

// makeOld writes years that are over into a lock file.
func makeOld(t testing.TB, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	old := regexp.MustCompile(`"\d{4}-(\d\d-\d\dT)`).ReplaceAll(content, []byte(`"2020-$1`))
	require.NotEqual(t, content, old)
	require.NoError(t, os.WriteFile(path, old, 0o600))
}

// TestNobodyIsToldWhoWaitsNotLong: a lock that is free within a second, or is not waited for, is not worth a word.
func TestNobodyIsToldWhoWaitsNotLong(t *testing.T) {
	_, run := locksOfOthers(t)
	for _, call := range []string{"run DIR/locks/semaphore --wait 900ms -- true", "run DIR/locks/semaphore --nonblock -- true", "run DIR/locks/x -- true"} {
		require.NotContains(t, run(call).Stderr, "waiting for", call)
	}
}

// TestRunForceLock takes over the stale lock of tower, and never one that is active.
func TestRunForceLock(t *testing.T) {
	dir, run := locksOfOthers(t)
	const force = "run --format tower --force-lock DIR/locks/tower.lock --nonblock -- echo ran"
	require.Equal(t, cli.ExitBlocked, run(force).Code)
	makeOld(t, filepath.Join(dir, "locks", "tower.lock"))
	require.Equal(t, cli.ExitBlocked, run(strings.Replace(force, "--force-lock ", "", 1)).Code)
	done := run(force)
	require.Equal(t, 0, done.Code, done.Stderr)
	require.Equal(t, "ran\n", done.Stdout)
	done = run("run --force-lock DIR/locks/x -- true")
	require.Equal(t, cli.ExitFailed, done.Code)
	require.Contains(t, done.Stderr, "--force-lock is for the format [tower], not for semaphore")
}

// TestWaitingOnATerminal has one notice there, which is kept up to date and gone once the lock is acquired.
func TestWaitingOnATerminal(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	require.NoError(t, os.WriteFile(lock, []byte("1\n"), 0o600))
	master, terminal := openTerminal(t)
	cmd := exec.Command(clitest.ProgramNamed(t, "lockfs"), "run", "--format", "pid", lock, "--", "true")
	cmd.Env, cmd.Stderr = clitest.Environment(swarm.StateDirVariable+"="+dir), terminal
	require.NoError(t, cmd.Start())
	require.NoError(t, terminal.Close())

	var mu sync.Mutex
	var shown bytes.Buffer
	twice, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		buffer, told := make([]byte, 4096), false
		for {
			n, err := master.Read(buffer)
			mu.Lock()
			shown.Write(buffer[:n])
			if !told && strings.Count(shown.String(), "waiting for") >= 2 {
				told = true
				close(twice)
			}
			mu.Unlock()
			if err != nil { // EIO, when nobody has the terminal any more
				return
			}
		}
	}()
	select {
	case <-twice:
	case <-time.After(time.Minute):
		t.Fatal("it is not kept up to date: ", shown.String())
	}
	require.NoError(t, os.Remove(lock))
	require.NoError(t, cmd.Wait())
	<-ended
	require.NotContains(t, shown.String(), "\n", "it is one line")
	require.True(t, strings.HasSuffix(shown.String(), "\r\033[J"), "%q", shown.String())
}

// openTerminal answers both ends of a new terminal.
func openTerminal(t testing.TB) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return master, terminal
}
