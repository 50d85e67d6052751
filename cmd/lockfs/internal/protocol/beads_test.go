package protocol

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/beads"
)

// database is a beads directory, and what runs `lockfs beads` and shell scripts with $LOCKFS and $DIR there.
type database struct {
	testing.TB
	dir, program string
}

func newDatabase(t testing.TB) *database {
	dir := filepath.Join(t.TempDir(), ".beads")
	require.NoError(t, os.Mkdir(dir, 0o755))
	return &database{t, dir, clitest.ProgramNamed(t, "lockfs")}
}

func (d *database) beads(verb string, args ...string) clitest.Outcome {
	d.Helper()
	return clitest.Execute(d, nil, d.program, append([]string{"beads", verb, d.dir}, args...)...)
}

func (d *database) environment() []string { return []string{"LOCKFS=" + d.program, "DIR=" + d.dir} }

func (d *database) script(script string) clitest.Outcome {
	d.Helper()
	return clitest.Execute(d, d.environment(), "bash", "-c", script)
}

func (d *database) path() string { return filepath.Join(d.dir, beads.FileName) }

func (d *database) put(content string) {
	d.Helper()
	require.NoError(d, os.WriteFile(d.path(), []byte(content), beads.FileMode))
}

func (d *database) content() string {
	content, err := os.ReadFile(d.path())
	if err != nil {
		return ""
	}
	return string(content)
}

func beadsContent(holder string, pid int, host string) string {
	return fmt.Sprintf(`{"holder":%q,"pid":%d,"hostname":%q,"started_at":"2025-10-25T12:00:00Z"}`, holder, pid, host)
}

func (d *database) hostname() string {
	host, err := os.Hostname()
	require.NoError(d, err)
	return host
}

// deadPID is the number of a process that has been waited for.
func (d *database) deadPID() int {
	cmd := exec.Command("true")
	require.NoError(d, cmd.Run())
	return cmd.Process.Pid
}

// TestBeadsLocksForTheCaller: the lock outlives the command and ends with the script that called it.
func TestBeadsLocksForTheCaller(t *testing.T) {
	d := newDatabase(t)
	done := d.script(`echo $$; "$LOCKFS" beads acquire "$DIR" --holder me --version 2.0 || exit
		"$LOCKFS" beads check "$DIR" --json; exit 0`)
	require.Equal(t, 0, done.Code, done.Stderr)
	lines := strings.SplitN(done.Stdout, "\n", 3)
	require.Equal(t, "Locked by me until it is released or process "+lines[0]+" (bash) ends", lines[1])
	held := fieldsOf(t, lines[2])
	require.Equal(t, []any{"held", "me", "2.0", d.path()}, []any{held["state"], held["holder"], held["version"], held["path"]})
	require.Equal(t, lines[0], fmt.Sprint(held["pid"]))

	check := d.beads("check")
	require.Equal(t, clitest.Outcome{Stdout: "Stale lock of me: process " + lines[0] + " is gone\n"}, check)
	skip, holder, err := beads.ShouldSkipDatabase(d.dir)
	require.NoError(t, err)
	require.False(t, skip)
	require.Equal(t, "me", holder)
}

func TestBeadsReleaseByTheScriptThatHasIt(t *testing.T) {
	d := newDatabase(t)
	for _, script := range []string{
		`"$LOCKFS" beads acquire "$DIR" --holder me && "$LOCKFS" beads release "$DIR"; exit $?`,
		`"$LOCKFS" beads acquire "$DIR" --holder me && (true; "$LOCKFS" beads release "$DIR"; exit $?); exit $?`,
		`sleep 60 & "$LOCKFS" beads acquire "$DIR" --holder me --pid $! && "$LOCKFS" beads release "$DIR" --pid $!; c=$?; kill $!; exit $c`,
	} {
		done := d.script(script)
		require.Equal(t, 0, done.Code, "%s: %s", script, done.Stderr)
		require.Contains(t, done.Stdout, "Released the lock of me\n")
		require.Equal(t, clitest.Outcome{Stdout: "No lock\n"}, d.beads("check"))
	}
}

func TestBeadsJSON(t *testing.T) {
	d := newDatabase(t)
	for content, state := range map[string]string{
		"": "invalid",
		beadsContent("x", os.Getpid(), d.hostname()):        "held",
		beadsContent("x", d.deadPID(), d.hostname()):        "stale",
		beadsContent("x", d.deadPID(), "not-"+d.hostname()): "held",
	} {
		d.put(content)
		require.Equal(t, state, fieldsOf(t, d.beads("check", "--json").Stdout)["state"])
		require.Equal(t, content, d.content(), "a check changes nothing")
	}
	require.NoError(t, os.Remove(d.path()))
	require.JSONEq(t, `{"state":"free","format":"beads","path":"`+d.path()+`"}`, d.beads("check", "--json").Stdout)
	taken := fieldsOf(t, d.beads("acquire", "--holder", "me", "--json").Stdout)
	require.EqualValues(t, os.Getpid(), taken["pid"])
	require.NotContains(t, taken, "token")
}

// TestBeadsExitCodes provokes the exit codes of acquire, release and check, and that nothing changes.
func TestBeadsExitCodes(t *testing.T) {
	d := newDatabase(t)
	dead, other := strconv.Itoa(d.deadPID()), strconv.Itoa(os.Getpid())
	holder := exec.Command("sleep", "60")
	require.NoError(t, holder.Start())
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	none, malformed := "", "{"
	held := beadsContent("them", holder.Process.Pid, d.hostname())
	remote := beadsContent("them", d.deadPID(), "not-"+d.hostname())
	for _, c := range []struct {
		content, call string
		code          int
		stderr        string
	}{
		{held, "acquire --holder me", cli.ExitBlocked, "not acquired: locked by them (process "},
		{remote, "acquire --holder me", cli.ExitBlocked, "wait until it is released, or if its holder is gone"},
		{malformed, "acquire --holder me", cli.ExitFailed, "not acquired: malformed lock file: unexpected EOF; look at " + d.path()},
		{none, "acquire", cli.ExitFailed, "give --holder NAME"},
		{none, "acquire --holder me --pid " + dead, cli.ExitFailed, "there is no such process"},
		{none, "acquire --holder me --pid 0", cli.ExitFailed, "there is no such process"},
		{none, "acquire --holder me extra", cli.ExitFailed, "usage: lockfs beads acquire DIR"},
		{held, "release", cli.ExitNotOwner, "not released: locked by them"},
		{held, "release --pid " + other, cli.ExitNotOwner, "not released: locked by them"},
		{remote, "release", cli.ExitNotOwner, "not released: locked by them"},
		{malformed, "release", cli.ExitFailed, "not released: malformed lock file"},
		{none, "release", cli.ExitNoLock, "not released: there is no lock " + d.path()},
		{held, "check", cli.ExitBlocked, ""},
		{remote, "check", cli.ExitBlocked, ""},
		{malformed, "check", cli.ExitFailed, "cannot tell who has the lock: malformed lock file"},
		{none, "check", 0, ""},
		{held, "run --holder me -- true", cli.ExitBlocked, "not acquired: locked by them"},
		{held, "run --holder me --wait 30ms -- true", cli.ExitTimedOut, "not acquired within 30ms: locked by them"},
		{malformed, "run --holder me -- true", cli.ExitFailed, "not acquired: malformed lock file: unexpected EOF; look at " + d.path()},
		{none, "run --holder me true", 0, ""},
		{none, "run --holder me --", cli.ExitFailed, "usage: lockfs beads run DIR"},
		{none, "run --holder me --unknown -- true", cli.ExitFailed, "unknown flag"},
		{none, "run --holder me --check-every 0s -- true", cli.ExitFailed, "--check-every"},
		{none, "run --holder me --wait -1s -- true", cli.ExitFailed, "--wait must not be negative"},
		{none, "run -- true", cli.ExitFailed, "give --holder NAME"},
		{none, "run --holder me -- /", cli.ExitCannotRun, "cannot run the command"},
		{none, "run --holder me -- ./not-there", cli.ExitNotFound, "cannot run the command"},
		{none, "run --holder me -- not-there", cli.ExitNotFound, "cannot run the command"},
		{none, "run --holder me -- true", 0, ""},
		{none, "run --holder me -- false", 1, ""},
	} {
		_ = os.Remove(d.path())
		if c.content != none {
			d.put(c.content)
		}
		words := strings.Fields(c.call)
		done := d.beads(words[0], words[1:]...)
		require.Equal(t, c.code, done.Code, "%s: %s", c.call, done.Stderr)
		require.Contains(t, done.Stderr, c.stderr, c.call)
		if c.stderr == "" {
			require.Empty(t, done.Stderr)
		}
		require.Equal(t, c.content, d.content(), c.call)
	}
	for dir, problem := range map[string]string{
		filepath.Dir(d.dir): "give " + d.dir,
		d.dir + "/none":     "no such file or directory; give the directory of a beads database",
		"beads_test.go":     "is no directory",
	} {
		require.Contains(t, clitest.Execute(t, nil, d.program, "beads", "check", dir).Stderr, problem)
	}
	wrong := clitest.Execute(t, []string{"LOCKFS_GRACE=x"}, d.program, "beads", "run", d.dir, "--holder", "me", "--", "true")
	require.Equal(t, cli.ExitFailed, wrong.Code)
	require.Contains(t, wrong.Stderr, `variable LOCKFS_GRACE="x"`)
	steal := d.beads("steal")
	require.Equal(t, cli.ExitFailed, steal.Code)
	require.Contains(t, steal.Stderr, "unknown subcommand steal")
}

func TestBeadsRunHasTheLock(t *testing.T) {
	d := newDatabase(t)
	d.put(beadsContent("dead", d.deadPID(), d.hostname()))
	done := clitest.Execute(t, append(d.environment(), tokenVariable+"=7"), d.program, "beads", "run", d.dir, "--holder", "me", "--",
		"bash", "-c", `echo $PPID token=$LOCKFS_TOKEN; cat "$DIR/.exclusive-lock"; exit 42`)
	require.Equal(t, 42, done.Code)
	parent, content, _ := strings.Cut(done.Stdout, " token=\n")
	lock, err := beads.Parse([]byte(content))
	require.NoError(t, err, done.Stdout)
	require.Equal(t, parent, strconv.Itoa(lock.PID))
	require.Empty(t, done.Stderr)
	require.Empty(t, d.content(), "released")
}

// running is `lockfs beads run` with a script that has said that it is ready.
type running struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr strings.Builder
}

func (d *database) run(script string, flags ...string) *running {
	d.Helper()
	args := append([]string{"beads", "run", d.dir, "--holder", "me", "--check-every", "20ms"}, flags...)
	r := &running{cmd: exec.Command(d.program, append(args, "--", "bash", "-c", script)...)}
	r.cmd.Env, r.cmd.Stderr = clitest.Environment(d.environment()...), &r.stderr
	out, err := r.cmd.StdoutPipe()
	require.NoError(d, err)
	require.NoError(d, r.cmd.Start())
	d.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.stdout = bufio.NewReader(out)
	line, err := r.stdout.ReadString('\n')
	require.NoError(d, err)
	require.Equal(d, "ready\n", line)
	return r
}

// end answers what the script has said since it was ready, and the exit code.
func (r *running) end() (said string, code int) {
	var b strings.Builder
	_, _ = r.stdout.WriteTo(&b)
	_ = r.cmd.Wait()
	return b.String(), r.cmd.ProcessState.ExitCode()
}

const untilTerminated = `trap 'echo terminated; exit 3' TERM; echo ready; while :; do sleep 0.02; done`

func TestBeadsRunLosesTheLock(t *testing.T) {
	for name, take := range map[string]struct {
		do  func(d *database)
		why string
	}{
		"removed":     {func(d *database) { require.NoError(d, os.Remove(d.path())) }, "another program removed"},
		"overwritten": {func(d *database) { d.put("mine") }, "another program overwrote"},
		"replaced":    {func(d *database) { d.put(beadsContent("them", 1, d.hostname())) }, "another program overwrote"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			r := d.run(untilTerminated)
			take.do(d)
			after := d.content()
			said, code := r.end()
			require.Equal(t, cli.ExitLost, code, r.stderr.String())
			require.Equal(t, "terminated\n", said)
			require.Contains(t, r.stderr.String(), "the lock was lost while the command ran: "+take.why)
			require.Equal(t, after, d.content(), "what is somebody else's stays")
		})
	}
}

// TestBeadsRunKillsWhatDoesNotEnd: what the command started counts, also when the command itself has ended.
func TestBeadsRunKillsWhatDoesNotEnd(t *testing.T) {
	for name, script := range map[string]string{
		"the command":     `trap '' TERM; echo ready; while :; do sleep 0.02; done`,
		"what it started": `(trap '' TERM; echo ready; while :; do sleep 0.02; done) & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			r := d.run(script, "--grace", "100ms")
			require.NoError(t, os.Remove(d.path()))
			_, code := r.end() // when nobody has its output open any more
			require.Equal(t, cli.ExitLost, code, r.stderr.String())
		})
	}
}

// TestBeadsRunFindsOutLate: the lock was lost, and the command ended well, perhaps before anybody looked.
func TestBeadsRunFindsOutLate(t *testing.T) {
	d := newDatabase(t)
	r := d.run(`echo ready; rm "$DIR/.exclusive-lock"`, "--check-every", "1h")
	_, code := r.end()
	require.Equal(t, cli.ExitLost, code)
	require.Contains(t, r.stderr.String(), "the lock was lost while the command ran")
}

func TestBeadsRunPassesSignalsOn(t *testing.T) {
	d := newDatabase(t)
	r := d.run(untilTerminated)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	said, code := r.end()
	require.Equal(t, "terminated\n", said)
	require.Equal(t, 3, code, r.stderr.String())
	require.Empty(t, d.content(), "released")

	r = d.run(`echo ready; exec sleep 60`)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGHUP))
	_, code = r.end()
	require.Equal(t, cli.ExitSignal+int(syscall.SIGHUP), code, r.stderr.String())
	require.Empty(t, d.content(), "released")
}

// TestBeadsRunKilled: if lockfs is killed, the command ends, and then the lock is released.
func TestBeadsRunKilled(t *testing.T) {
	d := newDatabase(t)
	r := d.run(untilTerminated)
	require.NoError(t, r.cmd.Process.Kill())
	said, _ := r.end() // when the command and the worker have closed their output
	require.Equal(t, "terminated\n", said)
	require.Equal(t, "No lock\n", d.beads("check").Stdout)
}

// TestBeadsOneOfManyProcesses: exactly one of those who find a stale lock runs.
func TestBeadsOneOfManyProcesses(t *testing.T) {
	d := newDatabase(t)
	d.put(beadsContent("dead", d.deadPID(), d.hostname()))
	var codes [8]int
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = d.beads("acquire", "--holder", strconv.Itoa(i)).Code })
	}
	all.Wait()
	won := 0
	for _, code := range codes {
		if code == 0 {
			won++
		} else {
			require.Equal(t, cli.ExitBlocked, code)
		}
	}
	require.Equal(t, 1, won)
}

func TestBeadsToken(t *testing.T) {
	require.Equal(t, []string{"A=1", "B="}, withToken([]string{"A=1", "LOCKFS_TOKEN=2", "B="}, ""))
	require.Equal(t, []string{"A=1", "LOCKFS_TOKEN=3"}, withToken([]string{"LOCKFS_TOKEN=2", "A=1"}, "3"))
	token, err := lockToken("beads_test.go")
	require.NoError(t, err)
	require.Empty(t, token)
}
