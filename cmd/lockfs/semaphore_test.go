package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"lockfs/formats/semaphore"
)

// lockDir is a directory for locks, and what runs the program with $LOCKFS and $LOCK there.
type lockDir struct {
	testing.TB
	program, path string // of my.lock
}

func newLockDir(t testing.TB) *lockDir {
	return &lockDir{t, programNamed(t, "lockfs"), filepath.Join(t.TempDir(), "my.lock")}
}

func (d *lockDir) environment() []string { return []string{"LOCKFS=" + d.program, "LOCK=" + d.path} }

// lockfs runs a command line, in which LOCK is the lock.
func (d *lockDir) lockfs(line string) outcome {
	d.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "LOCK", d.path)
	}
	return execute(d, d.environment(), d.program, words...)
}

func (d *lockDir) script(script string) outcome {
	d.Helper()
	return execute(d, d.environment(), "bash", "-c", script)
}

func (d *lockDir) put(content string) {
	d.Helper()
	_ = os.RemoveAll(d.path)
	if content != "" {
		require.NoError(d, os.WriteFile(d.path, []byte(content), 0o644))
	}
}

func (d *lockDir) content() string {
	content, _ := os.ReadFile(d.path)
	return string(content)
}

func semaphoreContent(pid int, age time.Duration) string {
	return fmt.Sprintf("pid=%d\ntimestamp=%d\ntag=theirs\n", pid, time.Now().Add(-age).Unix())
}

func TestSemaphoreForTheCaller(t *testing.T) {
	d := newLockDir(t)
	done := d.script(`echo $$; "$LOCKFS" semaphore acquire "$LOCK" --tag 'deploy v1' && cat "$LOCK" &&
		"$LOCKFS" semaphore check "$LOCK"; echo $?; (true; "$LOCKFS" semaphore release "$LOCK"); echo $?; ls "$LOCK"`)
	lines := strings.Split(done.stdout, "\n")
	require.Len(t, lines, 10, done.stdout+done.stderr)
	pid := lines[0]
	require.Equal(t, []string{"Lock acquired: " + d.path, "pid=" + pid}, lines[1:3])
	require.Regexp(t, `^timestamp=\d{10}$`, lines[3])
	require.Equal(t, "tag=deploy v1", lines[4])
	require.Regexp(t, "^Held by process "+pid+` \(deploy v1\) since `, lines[5])
	require.Equal(t, []string{strconv.Itoa(exitBlocked), "Lock released: " + d.path + " (process " + pid + ")", "0"}, lines[6:9])

	// What was taken for another process is released for it.
	d.lockfs("semaphore acquire LOCK --pid " + strconv.Itoa(os.Getpid()))
	require.Equal(t, exitNotOwner, d.script(`"$LOCKFS" semaphore release "$LOCK" --pid $$; exit $?`).code)
	require.Equal(t, 0, d.lockfs("semaphore release LOCK --pid "+strconv.Itoa(os.Getpid())).code)
}

// TestSemaphoreSpecifiedScript is the shell of "Shell Script Interop": a lock that two lines make.
func TestSemaphoreSpecifiedScript(t *testing.T) {
	d := newLockDir(t)
	d.script(`echo "pid=$$" > "$LOCK"`)
	require.Equal(t, exitBlocked, d.lockfs("semaphore acquire LOCK").code, "it is being written")
	d.script(`echo "timestamp=$(date +%s)" >> "$LOCK"; echo "tag=shell-script" >> "$LOCK"`)
	state := fieldsOf(t, d.lockfs("semaphore check LOCK --json").stdout)
	require.Equal(t, []any{"held", "shell-script"}, []any{state["state"], state["tag"]})
}

func TestSemaphoreJSON(t *testing.T) {
	d := newLockDir(t)
	for content, want := range map[string]string{
		"": `{"state":"free"}`,
		"pid=7\ntimestamp=1703520000\ntag=x": `{"state":"stale","pid":7,"holder":"7","acquired":"2023-12-25T16:00:00Z",
			"expires":"2023-12-25T17:00:00Z","reason":"stale since 2023-12-25T17:00:00Z","tag":"x"}`,
		"pid=7\r\ntimestamp=4000000000\r\n\n": `{"state":"held","pid":7,"holder":"7","acquired":"2096-10-02T07:06:40Z",
			"expires":"2096-10-02T08:06:40Z","reason":"stale at 2096-10-02T08:06:40Z unless it is renewed"}`,
		"pid=7\n": `{"state":"invalid","reason":"not a valid semaphore lock: timestamp: is required"}`,
	} {
		d.put(content)
		fields, wanted := fieldsOf(t, d.lockfs("semaphore check LOCK --json").stdout), fieldsOf(t, want)
		wanted["path"], wanted["format"] = d.path, "semaphore"
		delete(fields, "age_seconds")
		if wanted["state"] == "invalid" {
			require.NotEmpty(t, fields["acquired"])
			delete(fields, "acquired") // the file's
		}
		require.Equal(t, wanted, fields)
		require.Equal(t, content, d.content(), "a check changes nothing")
	}
	d.put("")
	taken := fieldsOf(t, d.lockfs("semaphore acquire LOCK --json --tag t").stdout)
	require.Equal(t, []any{"acquired", "held", d.path, float64(os.Getpid()), "t"},
		[]any{taken["outcome"], taken["state"], taken["path"], taken["pid"], taken["tag"]})
}

// TestSemaphoreExitCodes provokes each, and that nothing changes.
func TestSemaphoreExitCodes(t *testing.T) {
	d := newLockDir(t)
	held, stale := semaphoreContent(1<<22, time.Minute), semaphoreContent(1<<22, 2*time.Hour)
	for _, c := range []struct {
		content, call string
		code          int
		stderr        string
	}{
		{held, "acquire LOCK", exitBlocked, "not acquired: " + d.path + " is held by process 4194304 (theirs) since "},
		{held, "acquire LOCK", exitBlocked, "wait until it is released, or if you are sure"},
		{held, "acquire LOCK --timeout 30ms", exitTimedOut, "not acquired within 30ms: "},
		{held, "acquire LOCK --stale-timeout 2h --timeout 1ms", exitTimedOut, "is held by"},
		{"half", "acquire LOCK", exitBlocked, "is not a valid lock: pid: is required"},
		{"", "acquire LOCK/none/x", exitFailed, "no such file"},
		{held, "acquire", exitFailed, "usage: lockfs semaphore acquire PATH"},
		{held, "acquire LOCK --timeout -1s", exitFailed, "--timeout -1s: it must not be negative"},
		{held, "acquire LOCK --stale-timeout 0s", exitFailed, "--stale-timeout 0s"},
		{held, "acquire LOCK --retry-interval -1s", exitFailed, "--retry-interval -1s"},
		{held, "acquire LOCK --pid 0", exitFailed, "there is no such process"},
		{held, "acquire LOCK --other", exitFailed, "see `lockfs semaphore acquire --help`"},
		{held, "release LOCK", exitNotOwner, "not released: " + d.path + " is held by process 4194304"},
		{held, "release LOCK --pid 1", exitNotOwner, "not released"},
		{"half", "release LOCK", exitNotOwner, "is not a valid lock"},
		{"", "release LOCK", exitNoLock, "there is no lock " + d.path},
		{"", "release LOCK/none", exitNoLock, "there is no lock"},
		{held, "check LOCK", exitBlocked, ""},
		{"half", "check LOCK", exitBlocked, ""},
		{stale, "check LOCK", 0, ""},
		{"", "check LOCK", 0, ""},
		{held, "check LOCK/x", exitFailed, "not a directory"},
		{held, "check LOCK.none/x", exitFailed, "there is no directory: make it, or mount what it is on"},
		{held, "run LOCK -- true", exitBlocked, "not acquired: "},
		{held, "run LOCK --timeout 30ms -- true", exitTimedOut, "not acquired within 30ms"},
		{held, "run LOCK", exitFailed, "put it after --"},
		{held, "run LOCK x -- true", exitFailed, "2 arguments before --"},
		{held, "run LOCK --grace -1s -- true", exitFailed, "--grace -1s"},
		{held, "run LOCK --stale-timeout 1s -- true", exitFailed, "give 3s or more"},
		{held, "run LOCK -- no-such-command", exitNotFound, "cannot run the command"},
		{held, "run LOCK -- /etc/passwd", exitCannotRun, "cannot run the command"},
		{"", "run LOCK -- false", 1, ""},
		{"", "run LOCK -- true", 0, ""},
		{held, "steal LOCK", exitFailed, "steal is no command of it"},
	} {
		d.put(c.content)
		done := d.lockfs("semaphore " + c.call)
		require.Equal(t, c.code, done.code, "%s: %s", c.call, done.stderr)
		require.Contains(t, done.stderr, c.stderr, c.call)
		if c.stderr == "" {
			require.Empty(t, done.stderr)
		}
		require.Equal(t, c.content, d.content(), c.call)
	}
	d.put(stale)
	require.Equal(t, 0, d.lockfs("semaphore acquire LOCK").code)
	d.put(semaphoreContent(1<<22, time.Minute))
	require.Equal(t, 0, d.lockfs("semaphore acquire LOCK --stale-timeout 30s").code)
	d.put(stale)
	require.Equal(t, 0, d.lockfs("semaphore release LOCK").code)
	require.Empty(t, d.content())
}

// TestSemaphoreFilePermissions is the section of that name.
func TestSemaphoreFilePermissions(t *testing.T) {
	d := newLockDir(t)
	for mode, warns := range map[os.FileMode]bool{0o755: false, 0o777: true, 0o777 | os.ModeSticky: false} {
		require.NoError(t, os.Chmod(filepath.Dir(d.path), mode))
		for _, call := range []string{"semaphore acquire LOCK", "run LOCK -- true"} {
			d.put("")
			done := d.lockfs(call)
			require.Equal(t, 0, done.code, done.stderr)
			require.Equal(t, warns, strings.Contains(done.stderr, "warning: everybody may remove the locks in "+filepath.Dir(d.path)), call)
		}
	}
}

func TestSemaphoreAcquireWaits(t *testing.T) {
	d := newLockDir(t)
	held, err := semaphore.File{Path: d.path}.TryAcquire(t.Context())
	require.NoError(t, err)
	done := make(chan outcome, 1)
	go func() { done <- d.lockfs("semaphore acquire LOCK --timeout 1m --retry-interval 1h") }()
	require.NoError(t, held.Release(t.Context()))
	ended := <-done
	require.Equal(t, 0, ended.code, ended.stderr)
	require.Contains(t, d.content(), fmt.Sprintf("pid=%d\n", os.Getpid()))
}

// TestLockCommandsHelp: each command has an example, and says what its exit codes mean.
func TestLockCommandsHelp(t *testing.T) {
	commands := append(semaphoreCommand().Commands(), runCommand(), waitCommand())
	for _, cmd := range commands {
		require.NotEmpty(t, cmd.Example, cmd.Name())
		codes := map[string][]int{
			"acquire": {0, exitBlocked, exitTimedOut, exitFailed},
			"release": {0, exitNotOwner, exitNoLock, exitFailed},
			"check":   {0, exitBlocked, exitFailed},
			"run":     {exitBlocked, exitTimedOut, exitLost, exitFailed, exitCannotRun, exitNotFound},
			"wait":    {0, exitTimedOut, exitFailed},
		}[cmd.Name()]
		require.NotEmpty(t, codes, cmd.Name())
		for _, code := range codes {
			require.Regexp(t, fmt.Sprintf(`(?m)^ +%d +\S`, code), cmd.Long, cmd.Name())
		}
		requireNarrow(t, cmd)
	}
	requireNarrow(t, semaphoreCommand())
}

func requireNarrow(t testing.TB, cmd *cobra.Command) {
	t.Helper()
	for line := range strings.Lines(cmd.Long) {
		require.LessOrEqual(t, len(line), 121, line)
	}
}
