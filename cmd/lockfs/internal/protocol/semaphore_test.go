package protocol

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

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/semaphore"
)

// lockDir is a directory for locks, and what runs the program with $LOCKFS and $LOCK there.
type lockDir struct {
	testing.TB
	program, path string // of my.lock
}

func newLockDir(t testing.TB) *lockDir {
	return &lockDir{t, clitest.ProgramNamed(t, "lockfs"), filepath.Join(t.TempDir(), "my.lock")}
}

func (d *lockDir) environment() []string { return []string{"LOCKFS=" + d.program, "LOCK=" + d.path} }

// lockfs runs a command line, in which LOCK is the lock.
func (d *lockDir) lockfs(line string) clitest.Outcome {
	d.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "LOCK", d.path)
	}
	return clitest.Execute(d, d.environment(), d.program, words...)
}

func (d *lockDir) script(script string) clitest.Outcome {
	d.Helper()
	return clitest.Execute(d, d.environment(), "bash", "-c", script)
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
	lines := strings.Split(done.Stdout, "\n")
	require.Len(t, lines, 10, done.Stdout+done.Stderr)
	pid := lines[0]
	require.Equal(t, []string{"Lock acquired: " + d.path, "pid=" + pid}, lines[1:3])
	require.Regexp(t, `^timestamp=\d{10}$`, lines[3])
	require.Equal(t, "tag=deploy v1", lines[4])
	require.Regexp(t, "^Held by process "+pid+` \(deploy v1\) since `, lines[5])
	require.Equal(t, []string{strconv.Itoa(cli.ExitBlocked), "Lock released: " + d.path + " (process " + pid + ")", "0"}, lines[6:9])

	// What was taken for another process is released for it.
	d.lockfs("semaphore acquire LOCK --pid " + strconv.Itoa(os.Getpid()))
	require.Equal(t, cli.ExitNotOwner, d.script(`"$LOCKFS" semaphore release "$LOCK" --pid $$; exit $?`).Code)
	require.Equal(t, 0, d.lockfs("semaphore release LOCK --pid "+strconv.Itoa(os.Getpid())).Code)
}

// TestSemaphoreSpecifiedScript is the shell of "Shell Script Interop": a lock that two lines make.
func TestSemaphoreSpecifiedScript(t *testing.T) {
	d := newLockDir(t)
	d.script(`echo "pid=$$" > "$LOCK"`)
	require.Equal(t, cli.ExitBlocked, d.lockfs("semaphore acquire LOCK").Code, "it is being written")
	d.script(`echo "timestamp=$(date +%s)" >> "$LOCK"; echo "tag=shell-script" >> "$LOCK"`)
	state := fieldsOf(t, d.lockfs("semaphore check LOCK --json").Stdout)
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
		fields, wanted := fieldsOf(t, d.lockfs("semaphore check LOCK --json").Stdout), fieldsOf(t, want)
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
	taken := fieldsOf(t, d.lockfs("semaphore acquire LOCK --json --tag t").Stdout)
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
		{held, "acquire LOCK", cli.ExitBlocked, "not acquired: " + d.path + " is held by process 4194304 (theirs) since "},
		{held, "acquire LOCK", cli.ExitBlocked, "wait until it is released, or if its holder is gone"},
		{held, "acquire LOCK --timeout 30ms", cli.ExitTimedOut, "not acquired within 30ms: "},
		{held, "acquire LOCK --stale-timeout 2h --timeout 1ms", cli.ExitTimedOut, "is held by"},
		{"half", "acquire LOCK", cli.ExitBlocked, "is not a valid lock: pid: is required"},
		{"", "acquire LOCK/none/x", cli.ExitFailed, "no such file"},
		{held, "acquire", cli.ExitFailed, "usage: lockfs semaphore acquire PATH"},
		{held, "acquire LOCK --timeout -1s", cli.ExitFailed, "--timeout -1s: it must not be negative"},
		{held, "acquire LOCK --stale-timeout 0s", cli.ExitFailed, "--stale-timeout 0s"},
		{held, "acquire LOCK --retry-interval -1s", cli.ExitFailed, "--retry-interval -1s"},
		{held, "acquire LOCK --pid 0", cli.ExitFailed, "there is no such process"},
		{held, "acquire LOCK --other", cli.ExitFailed, "see `lockfs semaphore acquire --help`"},
		{held, "release LOCK", cli.ExitNotOwner, "not released: " + d.path + " is held by process 4194304"},
		{held, "release LOCK --pid 1", cli.ExitNotOwner, "not released"},
		{"half", "release LOCK", cli.ExitNotOwner, "is not a valid lock"},
		{"", "release LOCK", cli.ExitNoLock, "there is no lock " + d.path},
		{"", "release LOCK/none", cli.ExitNoLock, "there is no lock"},
		{held, "check LOCK", cli.ExitBlocked, ""},
		{"half", "check LOCK", cli.ExitBlocked, ""},
		{stale, "check LOCK", 0, ""},
		{"", "check LOCK", 0, ""},
		{held, "check LOCK/x", cli.ExitFailed, "not a directory"},
		{held, "check LOCK.none/x", cli.ExitFailed, "the directory of the lock is missing: create it, or mount its file system"},
		{held, "run LOCK -- true", cli.ExitBlocked, "not acquired: "},
		{held, "run LOCK --timeout 30ms -- true", cli.ExitTimedOut, "not acquired within 30ms"},
		{held, "run LOCK", cli.ExitFailed, "there is no command"},
		{held, "run LOCK --grace -1s -- true", cli.ExitFailed, "--grace -1s"},
		{held, "run LOCK --stale-timeout 1s -- true", cli.ExitFailed, "give 3s or more"},
		{held, "run LOCK -- no-such-command", cli.ExitNotFound, "cannot run the command"},
		{held, "run LOCK -- /etc/passwd", cli.ExitCannotRun, "cannot run the command"},
		{"", "run LOCK -- false", 1, ""},
		{"", "run LOCK -- true", 0, ""},
		{held, "steal LOCK", cli.ExitFailed, "unknown subcommand steal"},
	} {
		d.put(c.content)
		done := d.lockfs("semaphore " + c.call)
		require.Equal(t, c.code, done.Code, "%s: %s", c.call, done.Stderr)
		require.Contains(t, done.Stderr, c.stderr, c.call)
		if c.stderr == "" {
			require.Empty(t, done.Stderr)
		}
		require.Equal(t, c.content, d.content(), c.call)
	}
	d.put(stale)
	require.Equal(t, 0, d.lockfs("semaphore acquire LOCK").Code)
	d.put(semaphoreContent(1<<22, time.Minute))
	require.Equal(t, 0, d.lockfs("semaphore acquire LOCK --stale-timeout 30s").Code)
	d.put(stale)
	require.Equal(t, 0, d.lockfs("semaphore release LOCK").Code)
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
			require.Equal(t, 0, done.Code, done.Stderr)
			require.Equal(t, warns, strings.Contains(done.Stderr, "warning: all users may remove the locks in "+filepath.Dir(d.path)), call)
		}
	}
}

func TestSemaphoreAcquireWaits(t *testing.T) {
	d := newLockDir(t)
	held, err := semaphore.File{Path: d.path}.TryAcquire(t.Context())
	require.NoError(t, err)
	done := make(chan clitest.Outcome, 1)
	go func() { done <- d.lockfs("semaphore acquire LOCK --timeout 1m --retry-interval 1h") }()
	require.NoError(t, held.Release(t.Context()))
	ended := <-done
	require.Equal(t, 0, ended.Code, ended.Stderr)
	require.Contains(t, d.content(), fmt.Sprintf("pid=%d\n", os.Getpid()))
}

// TestLockCommandsHelp: each command has an example, and says what its exit codes mean.
func TestLockCommandsHelp(t *testing.T) {
	commands := append(semaphoreCommand().Commands(), runCommand(), waitCommand())
	for _, cmd := range commands {
		require.NotEmpty(t, cmd.Example, cmd.Name())
		codes := map[string][]int{
			"acquire": {0, cli.ExitBlocked, cli.ExitTimedOut, cli.ExitFailed},
			"release": {0, cli.ExitNotOwner, cli.ExitNoLock, cli.ExitFailed},
			"check":   {0, cli.ExitBlocked, cli.ExitFailed},
			"run":     {cli.ExitBlocked, cli.ExitTimedOut, cli.ExitLost, cli.ExitFailed, cli.ExitCannotRun, cli.ExitNotFound},
			"wait":    {0, cli.ExitTimedOut, cli.ExitFailed},
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
