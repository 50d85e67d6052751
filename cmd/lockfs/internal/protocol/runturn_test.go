package protocol

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"

	"github.com/stretchr/testify/require"
)

// TestRunOncePer: a turn is over when a run has begun, with --retry when one has succeeded.
func TestRunOncePer(t *testing.T) {
	d := newLockDir(t)
	turn := func(line string, code int) {
		t.Helper()
		done := d.lockfs("run LOCK " + line)
		require.Equal(t, code, done.Code, done.Stderr)
		require.Empty(t, done.Stderr, "cron would send it")
		require.NoFileExists(t, d.path+".lock")
	}
	turn("--once-per 24h -- true", 0)
	require.Regexp(t, `(?s)^once per 24h, by.*\nrun +succeeded\non +\S+\nprocess +\d+\ncommand +"true"\nbegan .*\nended .*, exit code 0\n$`, d.content())
	turn("--once-per 24h -- touch LOCK.ran", cli.ExitTurnOver)
	turn("--once-per 24h --retry -- touch LOCK.ran", cli.ExitTurnOver)

	d.put("")
	turn("--once-per 24h --format pid -- false", 1)
	require.Contains(t, d.content(), "exit code 1\n")
	turn("--once-per 24h -- touch LOCK.ran", cli.ExitTurnOver)
	turn("--once-per 24h --retry -- false", 1)
	require.NoFileExists(t, d.path+".ran")
	turn("--once-per 24h --retry --format swarm -- touch LOCK.ran", 0)
	require.FileExists(t, d.path+".ran")

	d.put("precious\n")
	done := d.lockfs("run LOCK --once-per 24h -- touch LOCK.ran2")
	require.Equal(t, cli.ExitFailed, done.Code)
	require.Contains(t, done.Stderr, "is no stamp of lockfs run --once-per")
	require.Equal(t, "precious\n", d.content())
	require.NoFileExists(t, d.path+".ran2")
}

// TestRunOncePerPeriod: with the next period comes the next turn.
func TestRunOncePerPeriod(t *testing.T) {
	d := newLockDir(t)
	first := d.lockfs("run LOCK --once-per 1s -- false")
	require.Equal(t, 1, first.Code, first.Stderr)
	before := d.content()
	require.Eventually(t, func() bool {
		code := d.lockfs("run LOCK --once-per 1s -- true").Code
		require.Contains(t, []int{0, cli.ExitTurnOver}, code)
		return code == 0
	}, time.Minute, 10*time.Millisecond)
	line := func(stamp string) string { return strings.Split(stamp, "\n")[1] }
	require.NotEqual(t, line(before), line(d.content()))
}

// TestRunOncePerAlone: of those who come at once one runs, also if it is killed.
func TestRunOncePerAlone(t *testing.T) {
	for script, want := range map[string]string{"echo ran": "ran\n", "echo ran; kill -9 $PPID; while :; do :; done": "ran\n"} {
		d := newLockDir(t)
		said := make([]string, 8)
		var wait sync.WaitGroup
		for i := range said {
			wait.Go(func() {
				said[i] = clitest.Execute(t, d.environment(), d.program, "run", d.path, "--once-per", "24h", "--format", "pid", "--", "sh", "-c", script).Stdout
			})
		}
		wait.Wait()
		require.Equal(t, want, strings.Join(said, ""))
		left, err := filepath.Glob(d.path + ".now-*")
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestRunOncePerArguments(t *testing.T) {
	d := newLockDir(t)
	for call, problem := range map[string]string{
		"run LOCK --once-per soon -- true":              "give a duration such as 15m",
		"run LOCK --retry -- true":                      "--retry is for --once-per",
		"run LOCK --once-per 1h --slots 2 -- true":      "and not both",
		"run LOCK --once-per 1h --format beads -- true": "not for the format beads",
		"run LOCK --slots 0 -- true":                    "--slots 0: give 1 to 1000",
		"run LOCK --slots 1001 -- true":                 "--slots 1001: give 1 to 1000",
		"run LOCK --slots 2 --format tower -- true":     "not for tower",
		"run LOCK/x/y --slots 2 -- true":                "no such file or directory",
		"run LOCK/x/y --once-per 1h -- true":            "where the lock would be there is no directory",
	} {
		done := d.lockfs(call)
		require.Equal(t, cli.ExitFailed, done.Code, call)
		require.Contains(t, done.Stderr, problem, call)
	}
}

// TestRunOncePerOfSomebodyElse: who waits for a lock whose holder begins the turn has nothing more to wait for, and nothing to say.
func TestRunOncePerOfSomebodyElse(t *testing.T) {
	for _, format := range []string{"semaphore", "tower", "swarm", "pid"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newLockDir(t)
			done := d.script(`chmod 700 "${LOCK%/*}"; stamp=${LOCK%.lock}; "$LOCKFS" run "$stamp" --once-per 24h -- true; mv "$stamp" "$stamp.begun"; mkfifo "$stamp.ready"
				timeout 60 "$LOCKFS" run --format ` + format + ` "$LOCK" -- sh -c 'echo > "${LOCK%.lock}.ready"; exec sleep 1000' &
				read _ < "$stamp.ready"; { sleep 1.5; cp "$stamp.begun" "$stamp"; } &
				"$LOCKFS" run --format ` + format + ` "$stamp" --once-per 24h -- echo ran; echo $?; ls "$LOCK"; kill %1; wait`)
			require.Equal(t, fmt.Sprintf("%d\n%s\n", cli.ExitTurnOver, d.path), done.Stdout)
			require.Empty(t, done.Stderr, "cron would send it")
		})
	}
}
