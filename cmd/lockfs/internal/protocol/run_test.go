package protocol

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/process"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats"
	"lockfs/formats/semaphore"
	"lockfs/raftstore/hostinfo"
)

// start starts `lockfs run` of a script, and waits until that has said that it is ready.
func (d *lockDir) start(script string, flags ...string) *running {
	d.Helper()
	args := append([]string{"run", d.path}, flags...)
	r := &running{cmd: exec.Command(d.program, append(args, "--", "bash", "-c", script)...)}
	r.cmd.Env, r.cmd.Stderr = clitest.Environment(d.environment()...), &r.stderr
	out, err := r.cmd.StdoutPipe()
	require.NoError(d, err)
	require.NoError(d, r.cmd.Start())
	d.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.stdout = bufio.NewReader(out)
	line, err := r.stdout.ReadString('\n')
	require.NoError(d, err, "%s", &r.stderr)
	require.Equal(d, "ready\n", line)
	return r
}

// TestRunFormats: the command runs under a lock of the format, which is gone after it.
func TestRunFormats(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for format, want := range map[string]struct{ flags, content string }{
		"semaphore":  {"", `^pid=\d+\ntimestamp=\d+\ntag=bash\n$`},
		"semaphore ": {"--tag nightly", `\ntag=nightly\n$`},
		"pid":        {"", `^\d+\n$`},
		"swarm":      {"", `"task_id": "my",\s+"worker": "` + host + `-\d+",(?s:.*)"expires_at": ".+Z"`},
		"swarm ":     {"--holder w --ttl 1h", `"worker": "w"`},
		"tower":      {"", `"lock_name": "my",(?s:.*)"actor": "` + host + `-\d+",\s+"intent": "bash",\s+"intent_version": "1"`},
		"tower ":     {"--holder me --intent i --intent-version 2 --ttl 60", `"actor": "me",\s+"intent": "i",\s+"intent_version": "2"(?s:.*)"ttl_seconds": 60`},
		"beads":      {"", `"holder": "` + host + `-\d+",\s+"pid": \d+`},
	} {
		d := newLockDir(t)
		format = strings.TrimSpace(format)
		if format == "beads" {
			d.path = filepath.Join(filepath.Dir(d.path), ".exclusive-lock")
		}
		args := append([]string{"run", "--format", format, d.path}, strings.Fields(want.flags)...)
		args = append(args, "--", "bash", "-c", `cat "$LOCK"; echo "token=$LOCKFS_TOKEN" >&2; exit 42`)
		done := clitest.Execute(t, append(d.environment(), tokenVariable+"=7"), d.program, args...)
		require.Equal(t, 42, done.Code, "%s: %s", format, done.Stderr)
		require.Regexp(t, want.content, done.Stdout)
		require.Contains(t, done.Stderr, "token=\n", "that of another lock is not handed on")
		require.Equal(t, format, formats.Detect([]byte(done.Stdout)).String())
		require.NoFileExists(t, d.path)
	}
}

// heldContent is how the lock of a format is when the process has it.
func heldContent(t testing.TB, format string, pid int) string {
	host, err := os.Hostname()
	require.NoError(t, err)
	now := time.Now().UTC().Format(time.RFC3339)
	switch format {
	case "pid":
		return fmt.Sprintln(pid)
	case "swarm":
		return swarmContent("my", "them", "")
	case "beads":
		return beadsContent("them", pid, host)
	case "tower":
		return fmt.Sprintf(`{"lock_version":"v1","lock_name":"my","request_id":"req_1","actor":"them","intent":"i","intent_version":"1",`+
			`"host_id":%q,"pid":%d,"created_at":%q,"last_heartbeat_at":%[3]q,"ttl_seconds":900}`, host, pid, now)
	}
	return semaphoreContent(pid, 0)
}

// TestRunWaits: each format waits for a lock of its own, for ever, as long as it may, or not at all.
func TestRunWaits(t *testing.T) {
	for _, format := range []string{"semaphore", "pid", "swarm", "tower", "beads"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			if format == "beads" {
				d.path = filepath.Join(filepath.Dir(d.path), ".exclusive-lock")
			}
			content := heldContent(t, format, os.Getpid())
			d.put(content)
			for flags, code := range map[string]int{
				"--nonblock": cli.ExitBlocked, "--wait 0s": cli.ExitBlocked, "--wait 30ms": cli.ExitTimedOut,
			} {
				done := d.lockfs("run LOCK --format " + format + " " + flags + " -- touch LOCK.ran")
				require.Equal(t, code, done.Code, done.Stderr)
				require.NotEmpty(t, done.Stderr)
				require.Empty(t, done.Stdout)
			}
			require.Equal(t, content, d.content())
			require.NoFileExists(t, d.path+".ran")
			ended := make(chan clitest.Outcome, 1)
			go func() { ended <- d.lockfs("run LOCK --format " + format + " -- touch LOCK.ran") }()
			require.NoError(t, os.Remove(d.path))
			done := <-ended
			require.Equal(t, 0, done.Code, done.Stderr)
			require.FileExists(t, d.path+".ran")
		})
	}
}

// awaitWatching waits until a process waits for a lock.
func awaitWatching(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pid := range process.Descendants(cmd.Process.Pid) {
			descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, descriptor := range descriptors {
				if target, _ := os.Readlink(descriptor); strings.Contains(target, "inotify") {
					return true
				}
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond)
}

func TestRunInterruptedWhileItWaits(t *testing.T) {
	d := newLockDir(t)
	d.put(semaphoreContent(os.Getpid(), 0))
	cmd := exec.Command(d.program, "run", d.path, "--", "touch", d.path+".ran")
	cmd.Env = clitest.Environment()
	require.NoError(t, cmd.Start())
	awaitWatching(t, cmd)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.Error(t, cmd.Wait())
	require.Equal(t, cli.ExitSignal+int(syscall.SIGHUP), cmd.ProcessState.ExitCode())
	require.NoFileExists(t, d.path+".ran")
	require.NotEmpty(t, d.content())
}

func TestRunWrongArguments(t *testing.T) {
	d := newLockDir(t)
	for call, problem := range map[string]string{
		"run LOCK":                                   "there is no command",
		"run LOCK --":                                "there is no command",
		"run -- true":                                "there is no command",
		"run LOCK --other true":                      "see `lockfs run --help`",
		"run LOCK --format other -- true":            "--format other: it is semaphore",
		"run LOCK --format none -- true":             "--format none: it is semaphore",
		"run LOCK --format pid --ttl 3s -- true":     "--ttl is for the format [tower swarm], not for pid",
		"run LOCK --format tower --tag x -- true":    "--tag is for the format [semaphore]",
		"run LOCK --wait 1s --nonblock -- true":      "and not both",
		"run LOCK --wait -1s -- true":                "must not be negative",
		"run LOCK --grace -1s -- true":               "--grace -1s",
		"run LOCK --stale-timeout 1s -- true":        "give 3s or more",
		"run LOCKX --format swarm -- true":           "are files NAME.lock",
		"run LOCK/../My.lock --format tower -- true": "must contain only a-z",
		"run LOCK --format tower --ttl 1 -- true":    "give 2s or more",
		"run LOCK --format beads -- true":            "no such file or directory",
		"run LOCK --other -- true":                   "see `lockfs run --help`",
	} {
		done := d.lockfs(call)
		require.Equal(t, cli.ExitFailed, done.Code, call)
		require.Contains(t, done.Stderr, problem, call)
	}
	require.Equal(t, cli.ExitFailed, clitest.Execute(t, nil, d.program, "run", "", "--", "true").Code)
	fromVariable := func(variable string) clitest.Outcome {
		return clitest.Execute(t, []string{variable}, d.program, "run", d.path, "--", "true")
	}
	require.Contains(t, fromVariable("LOCKFS_WAIT=5").Stderr, "write it like 90s, 10m or 24h; see `lockfs run --help`")
	require.Equal(t, clitest.Outcome{}, fromVariable("LOCKFS_HOLDER=me"), "it may be meant for other formats")
	require.Equal(t, cli.ExitNotFound, d.lockfs("run LOCK -- no-such-command").Code)
	require.Equal(t, cli.ExitCannotRun, d.lockfs("run LOCK -- /etc/passwd").Code)
	require.Equal(t, cli.ExitSignal+9, d.script(`"$LOCKFS" run "$LOCK" -- sh -c 'kill -9 $$'; exit $?`).Code)
	require.Empty(t, d.content())
}

// TestRunKeepsTheLockFresh: it lives for longer than the stale timeout.
func TestRunKeepsTheLockFresh(t *testing.T) {
	for format, flags := range map[string][]string{"semaphore": {"--stale-timeout", "3s"}, "swarm": {"--ttl", "2s"}} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			r := d.start(`echo ready; until [ -e "$LOCK.end" ]; do sleep 0.02; done`, append(flags, "--format", format)...)
			first := d.content()
			for range 2 {
				before := d.content()
				require.Eventually(t, func() bool { return d.content() != before }, time.Minute, 10*time.Millisecond)
			}
			require.Len(t, d.content(), len(first))
			require.NoError(t, os.WriteFile(d.path+".end", nil, 0o600))
			_, code := r.end()
			require.Equal(t, 0, code, r.stderr.String())
			require.Empty(t, d.content())
		})
	}
}

func TestRunLosesTheLock(t *testing.T) {
	for _, format := range []string{"semaphore", "pid", "swarm"} {
		for how, take := range map[string]func(d *lockDir){
			"removed":     func(d *lockDir) { require.NoError(d, os.Remove(d.path)) },
			"replaced":    func(d *lockDir) { d.put(heldContent(d, format, 1)) },
			"overwritten": func(d *lockDir) { require.NoError(d, os.WriteFile(d.path, []byte("other"), 0o600)) },
		} {
			t.Run(format+" "+how, func(t *testing.T) {
				t.Parallel()
				d := newLockDir(t)
				r := d.start(untilTerminated, "--format", format)
				take(d)
				after := d.content()
				said, code := r.end()
				require.Equal(t, cli.ExitLost, code, r.stderr.String())
				require.Equal(t, "terminated\n", said)
				require.Contains(t, r.stderr.String(), "the lock was lost while the command ran: another program ")
				require.Equal(t, after, d.content(), "what is somebody else's stays")
			})
		}
	}
}

func TestRunKillsWhatDoesNotEnd(t *testing.T) {
	d := newLockDir(t)
	r := d.start(`(trap '' TERM; echo ready; while :; do sleep 0.02; done) & wait`, "--grace", "100ms")
	require.NoError(t, os.Remove(d.path))
	_, code := r.end()
	require.Equal(t, cli.ExitLost, code, r.stderr.String())
}

func TestRunPassesSignalsOn(t *testing.T) {
	d := newLockDir(t)
	r := d.start(untilTerminated)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	said, code := r.end()
	require.Equal(t, "terminated\n", said)
	require.Equal(t, 3, code)
	require.Empty(t, d.content(), "released")
}

// TestRunKilled: if lockfs is killed, the command is told to end, and the lock is released after that.
func TestRunKilled(t *testing.T) {
	for _, format := range []string{"semaphore", "swarm", "pid", "tower"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			r := d.start(untilTerminated, "--format", format)
			require.NoError(t, r.cmd.Process.Kill())
			said, _ := r.end() // when the command and the worker have closed their output
			require.Equal(t, "terminated\n", said)
			require.Empty(t, d.content())
			require.Equal(t, 0, d.lockfs("run LOCK --nonblock --format "+format+" -- true").Code)
		})
	}
}

// inOtherSession is a script with a descendant in another session and process group that has lost its parent and ignores
// SIGTERM. $LOCK.alive has its pid.
const inOtherSession = `(setsid sh -c 'trap "" TERM; echo $$ >"$LOCK.pid"; mv "$LOCK.pid" "$LOCK.alive"; while :; do sleep 0.1; done' &)
until [ -s "$LOCK.alive" ]; do sleep 0.01; done; echo ready; sleep 600`

func (d *lockDir) straggler() (pid int) {
	content, err := os.ReadFile(d.path + ".alive")
	require.NoError(d, err)
	_, err = fmt.Sscan(string(content), &pid)
	require.NoError(d, err)
	return pid
}

// TestRunKilledLeavesNoProcessBehind kills lockfs, or its worker. The lock of the first is held until the last process has
// ended that the command started.
func TestRunKilledLeavesNoProcessBehind(t *testing.T) {
	for _, format := range []string{"pid", "semaphore"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			r := d.start(inOtherSession, "--format", format, "--grace", "1h")
			pid := d.straggler()
			require.NoError(t, syscall.Kill(pid, 0))
			require.NoError(t, r.cmd.Process.Kill())
			require.Equal(t, cli.ExitTimedOut, d.lockfs("run LOCK --wait 500ms --format "+format+" -- true").Code, "it still runs")
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			require.Equal(t, 0, d.lockfs("run LOCK --wait 1m --format "+format+" -- true").Code)
			_, _ = r.end()
		})
	}
	for kill, flags := range map[string][]string{"front": {"--grace", "100ms"}, "worker": {"--grace", "1h"}} {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			r := d.start(inOtherSession, append(flags, "--format", "pid")...)
			pid, holder := d.straggler(), r.cmd.Process.Pid
			if kill == "worker" {
				_, err := fmt.Sscan(d.content(), &holder)
				require.NoError(t, err)
				require.NotEqual(t, r.cmd.Process.Pid, holder)
			}
			require.NoError(t, syscall.Kill(holder, syscall.SIGKILL))
			_, code := r.end()
			if kill == "worker" {
				require.Equal(t, cli.ExitSignal+int(syscall.SIGKILL), code)
				require.Contains(t, r.stderr.String(), "the process that held the lock was killed")
			}
			require.True(t, syscall.Kill(pid, 0) != nil || process.Exiting(pid))
		})
	}
}

// TestRunWakesAStoppedCommand: a command that has stopped notices a signal that should end it.
func TestRunWakesAStoppedCommand(t *testing.T) {
	d := newLockDir(t)
	r := d.start(`trap 'echo terminated; exit 3' TERM; echo ready; kill -STOP $$; while :; do sleep 0.02; done`)
	stopped := func() bool {
		for _, pid := range process.Descendants(r.cmd.Process.Pid) {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if strings.Contains(string(status), "State:\tT") {
				return true
			}
		}
		return false
	}
	require.Eventually(t, stopped, time.Minute, 5*time.Millisecond)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	said, code := r.end()
	require.Equal(t, "terminated\n", said)
	require.Equal(t, 3, code)
}

// TestRunOnATerminal has standard input from a pipe. The command reads the terminal all the same, and Ctrl-C ends it.
func TestRunOnATerminal(t *testing.T) {
	d := newLockDir(t)
	master, terminal := openTerminal(t)
	// dash loses a SIGINT that comes while it starts a process, so it becomes the last one itself.
	cmd := exec.Command(d.program, "run", d.path, "--", "sh", "-c", `read line </dev/tty; cat; echo "read $line" >/dev/tty; exec sleep 600`)
	var out strings.Builder
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = clitest.Environment(), strings.NewReader("data"), &out, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	require.NoError(t, cmd.Start())
	require.NoError(t, terminal.Close())
	_, err := master.WriteString("hello\n")
	require.NoError(t, err)
	shown := bufio.NewReader(master)
	for line := ""; line != "read hello\r\n"; {
		line, err = shown.ReadString('\n')
		require.NoError(t, err)
	}
	_, err = master.WriteString("\x03")
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, cli.ExitSignal+int(syscall.SIGINT), cmd.ProcessState.ExitCode())
	require.Equal(t, "data", out.String())
	require.Empty(t, d.content(), "released")
}

// TestRunExcludes: of many processes that find a stale lock each runs alone.
func TestRunExcludes(t *testing.T) {
	const processes = 6
	for _, format := range []string{"semaphore", "pid"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			d.put(semaphoreContent(1<<22, 2*time.Hour))
			if format == "pid" {
				d.put(fmt.Sprintln((&database{TB: t}).deadPID()))
			}
			script := `mkdir "$LOCK.d" || exit 1; sleep 0.02; rmdir "$LOCK.d"; echo >> "$LOCK.count"`
			var all sync.WaitGroup
			for range processes {
				all.Go(func() {
					done := clitest.Execute(d, d.environment(), d.program, "run", d.path, "--format", format, "--", "sh", "-c", script)
					if done.Code != 0 {
						t.Error(done)
					}
				})
			}
			all.Wait()
			count, err := os.ReadFile(d.path + ".count")
			require.NoError(t, err)
			require.Len(t, count, processes)
		})
	}
}

// TestKeeper: what cannot be told for a while is no loss, but what cannot be told for as long as the lock lives.
func TestKeeper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	broken := errors.New("cut off")
	newKeeper := func(life time.Duration, renew, check func(context.Context) error) *keeper {
		return &keeper{
			path: path, every: time.Millisecond, check: check, renew: renew, lifetime: life, renewedAt: hostinfo.BootTime(),
			life: func() (time.Duration, error) { return life, nil },
		}
	}
	fails := func(context.Context) error { return broken }
	works := func(context.Context) error { return nil }

	err := newKeeper(30*time.Millisecond, fails, fails).keep(t.Context(), io.Discard)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "could not be renewed for 30ms")

	lost := &semaphore.LostError{Path: path, How: "removed"}
	require.Equal(t, lost, newKeeper(0, nil, func(context.Context) error { return lost }).keep(t.Context(), io.Discard))

	// It cannot be renewed, but it is there.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var warned strings.Builder
	require.NoError(t, newKeeper(30*time.Millisecond, fails, works).keep(ctx, &warned))
	require.Equal(t, 1, strings.Count(warned.String(), "warning"), warned.String())

	// It never goes stale by time.
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, newKeeper(0, nil, fails).keep(ctx, io.Discard))

	// It goes stale as was said last, when its mount ended before it could say that again.
	k := newKeeper(30*time.Millisecond, works, works)
	gone := false
	k.renew = func(context.Context) error {
		if gone {
			return broken
		}
		gone, k.check = true, fails
		return nil
	}
	k.life = func() (time.Duration, error) {
		if gone {
			return 0, broken
		}
		return 30 * time.Millisecond, nil
	}
	require.ErrorContains(t, k.keep(t.Context(), io.Discard), "could not be renewed for 30ms")

	// A hanging file system.
	k = newKeeper(time.Millisecond, nil, nil)
	_, err = k.patiently(func() (bool, error) { select {} })
	require.ErrorIs(t, err, errHangs)
}

// TestKeeperOfALifeThatHangs: how long a lock lives is read with no more patience than the lock itself.
func TestKeeperOfALifeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		k := &keeper{lifetime: time.Millisecond, check: func(context.Context) error { return nil }}
		k.renew = k.check
		k.life = func() (time.Duration, error) {
			<-answers
			return time.Hour, nil
		}
		require.ErrorIs(t, k.look(t.Context(), io.Discard), errHangs)
		close(answers)
		synctest.Wait()
		require.Equal(t, time.Millisecond, k.lifetime)
	})
}

// toldOnce is a lock that can be neither read nor renewed once it was taken.
type toldOnce struct{ released bool }

var errCutOff = errors.New("cut off")

func (*toldOnce) Path() string                { return "/no/such/lock" }
func (*toldOnce) Token() string               { return "7" }
func (*toldOnce) Check(context.Context) error { return errCutOff }

func (l *toldOnce) Release(context.Context) error {
	l.released = true
	return nil
}

// TestFileLockKnowsItsLife: nothing runs under a lock that may go stale by time unless it is known when.
func TestFileLockKnowsItsLife(t *testing.T) {
	var lock toldOnce
	l := &fileLock{
		path: lock.Path(), every: time.Millisecond, blocks: func(error) bool { return false },
		take:  func(context.Context) (held, error) { return &lock, nil },
		renew: lock.Check, life: func() (time.Duration, error) { return 0, errCutOff },
	}
	_, err := l.acquire(t.Context())
	require.ErrorIs(t, err, errCutOff)
	require.ErrorContains(t, err, "not acquired")
	require.True(t, lock.released)

	told := false
	l.life = func() (time.Duration, error) {
		if told {
			return 0, errCutOff
		}
		told = true
		return 30 * time.Millisecond, nil
	}
	token, err := l.acquire(t.Context())
	require.NoError(t, err)
	require.Equal(t, "7", token)
	require.ErrorContains(t, l.keep(t.Context(), io.Discard), "could not be renewed for 30ms")
}

// TestRunEndsAllOnATerminal: there the command shares the group of lockfs, but what it has started is ended with it.
func TestRunEndsAllOnATerminal(t *testing.T) {
	d := newLockDir(t)
	const loop = `sh -c 'trap "" TERM HUP; touch "$LOCK.$0"; while :; do sleep 0.02; done'`
	command := `bash -c '` + strings.ReplaceAll(`(setsid -f `+loop+` session); (`+loop+` background &); `+loop+` child`, `'`, `'\''`) + `'`
	cmd := exec.Command("script", "-qec", fmt.Sprintf("%s run %s --grace 100ms -- %s", d.program, d.path, command), "/dev/null")
	cmd.Env = clitest.Environment(d.environment()...)
	var said bytes.Buffer
	cmd.Stdout = &said
	require.NoError(t, cmd.Start())
	for _, name := range []string{"session", "background", "child"} {
		require.Eventually(t, func() bool { _, err := os.Stat(d.path + "." + name); return err == nil }, time.Minute, 10*time.Millisecond, d.path)
	}
	require.NoError(t, os.Remove(d.path))
	_ = cmd.Wait()
	require.Equal(t, cli.ExitLost, cmd.ProcessState.ExitCode(), said.String())
	require.Eventually(t, func() bool {
		left, err := exec.Command("pgrep", "-f", d.path+`|touch "\$LOCK`).Output()
		return err != nil && len(left) == 0
	}, time.Minute, 10*time.Millisecond)
}

// TestRunCommandWithoutDashes: flags stand before the command, and the command keeps its own.
func TestRunCommandWithoutDashes(t *testing.T) {
	d := newLockDir(t)
	for call, printed := range map[string]string{
		"run LOCK echo -n --wait x":          "--wait x",
		"run LOCK --wait 1m echo -n x":       "x",
		"run --wait 1m LOCK echo -n -- x":    "-- x",
		"run LOCK --wait 1m -- echo -n -- x": "-- x",
	} {
		require.Equal(t, clitest.Outcome{Stdout: printed}, d.lockfs(call), call)
	}
	require.Contains(t, d.lockfs("run LOCK --help").Stdout, "Acquire a lock, run a command")
}
