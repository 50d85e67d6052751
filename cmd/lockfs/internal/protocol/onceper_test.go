package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/semaphore"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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

	before := d.content()
	require.NoError(t, os.WriteFile(d.path+".cannot", []byte("#!/none\n"), 0o700))
	require.Equal(t, cli.ExitNotFound, d.lockfs("run LOCK --once-per 1s -- LOCK.cannot").Code)
	require.Equal(t, before, d.content(), "nothing was run")
	d.put("")
	require.Equal(t, cli.ExitNotFound, d.lockfs("run LOCK --once-per 24h -- LOCK.cannot").Code)
	require.NoFileExists(t, d.path)

	d.put("precious\n")
	done := d.lockfs("run LOCK --once-per 24h -- touch LOCK.ran2")
	require.Equal(t, cli.ExitFailed, done.Code)
	require.Contains(t, done.Stderr, "is no stamp of lockfs run --once-per")
	require.Equal(t, "precious\n", d.content())
	require.NoFileExists(t, d.path+".ran2")
}

// TestRunOncePerOfAnOddStamp: neither a turn in the future nor a FIFO keeps all turns from running in silence.
func TestRunOncePerOfAnOddStamp(t *testing.T) {
	d := newLockDir(t)
	stamp := "run       succeeded\non        h\nprocess   1\nfrom      2999-01-01T00:00:00Z\n"
	d.put(stamp)
	done := d.lockfs("run LOCK --once-per 1h -- touch LOCK.ran")
	require.Equal(t, cli.ExitFailed, done.Code)
	require.Contains(t, done.Stderr, "a turn that begins at 2999-01-01T00:00:00Z")
	require.Contains(t, done.Stderr, "correct the clock that is wrong, or remove the stamp")
	require.Equal(t, stamp, d.content())

	require.NoError(t, os.Remove(d.path))
	require.NoError(t, unix.Mkfifo(d.path, 0o600))
	done = d.lockfs("run LOCK --once-per 1h -- touch LOCK.ran")
	require.Equal(t, cli.ExitFailed, done.Code)
	require.Contains(t, done.Stderr, "is not a regular file")
	require.NoFileExists(t, d.path+".ran")
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
		"run LOCK/x/y --once-per 1h -- true":            "the directory of the lock is missing",
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

// turnsLock is the lock of a turn, which tells of its life what it was told to.
type turnsLock struct {
	runLock

	lives    []func() error // one after the other; then it lives
	released int
	taking   func(context.Context) error
}

func (l *turnsLock) acquire(ctx context.Context) (string, error) {
	if l.taking != nil {
		return "", l.taking(ctx)
	}
	return "7", nil
}

func (l *turnsLock) confirm(context.Context) error {
	if len(l.lives) == 0 {
		return nil
	}
	life := l.lives[0]
	l.lives = l.lives[1:]
	return life()
}

func (l *turnsLock) giveBack(context.Context) error {
	l.released++
	return nil
}

// TestATurnIsBegunUnderItsLockOnly: a stamp that was written late does not replace another's, and no command is started then.
func TestATurnIsBegunUnderItsLockOnly(t *testing.T) {
	hour, err := parsePeriod("1h")
	require.NoError(t, err)
	lives := func() error { return nil }
	lost := func() error { return &semaphore.LostError{Path: "x.lock", How: "replaced"} }
	silent := func() error { return errors.New("no answer") }
	const another = "run      succeeded\non       another\nprocess  1\nfrom     2999-01-01T00:00:00Z\n"
	const former = "run      succeeded\non       another\nprocess  1\nfrom     1999-01-01T00:00:00Z\n"
	for name, c := range map[string]struct {
		lives  func(stamp string) []func() error
		former string // empty: none
		left   string // a regular expression
		is     error
	}{
		"another's": {lives: func(stamp string) []func() error {
			return []func() error{func() error {
				require.NoError(t, os.WriteFile(stamp, []byte(another), 0o600))
				return lost()
			}}
		}, left: "^" + another + "$"},
		"lost before the stamp": {lives: func(string) []func() error { return []func() error{lost} }, former: former, left: "^" + former + "$"},
		"lost after it":         {lives: func(string) []func() error { return []func() error{lives, lost, lost} }, former: former, left: "started"},
		"silent":                {lives: func(string) []func() error { return []func() error{lives, silent} }, former: former, left: "^" + former + "$"},
		"silent for the first":  {lives: func(string) []func() error { return []func() error{lives, silent, silent} }, left: "^none$"},
		"not started":           {former: former, left: "^" + former + "$"},
		"not started at first":  {left: "^none$"},
	} {
		t.Run(name, func(t *testing.T) {
			stamp := filepath.Join(t.TempDir(), "x")
			if c.former != "" {
				require.NoError(t, os.WriteFile(stamp, []byte(c.former), 0o600))
			}
			lock := &turnsLock{}
			turn, err := newTurn(io.Discard, stamp, hour, false, []string{"true"}, lock)
			require.NoError(t, err)
			if c.lives != nil {
				lock.lives = c.lives(stamp)
				_, err = turn.acquire(t.Context())
				require.ErrorContains(t, err, "the command is not started")
			} else {
				_, err = turn.acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, turn.giveBack(t.Context()))
			}
			require.Equal(t, 1, lock.released)
			left, err := os.ReadFile(stamp)
			if errors.Is(err, os.ErrNotExist) {
				left, err = []byte("none"), nil
			}
			require.NoError(t, err)
			require.Regexp(t, c.left, string(left))
			files, err := os.ReadDir(filepath.Dir(stamp))
			require.NoError(t, err)
			require.LessOrEqual(t, len(files), 1, "%v", files)
		})
	}
}

// TestTheHolderOfATurnsLockEndsIt: a stamp that another wrote late does not stay, and that of who has the lock now does.
func TestTheHolderOfATurnsLockEndsIt(t *testing.T) {
	hour, err := parsePeriod("1h")
	require.NoError(t, err)
	const another = "run      started\non       another\nprocess  1\nfrom     1999-01-01T00:00:00Z\n"
	lost := func() error { return &semaphore.LostError{Path: "x.lock", How: "replaced"} }
	for state, lives := range map[string][]func() error{succeeded: nil, started: {lost, lost}} {
		stamp := filepath.Join(t.TempDir(), "x")
		lock := &turnsLock{}
		turn, err := newTurn(io.Discard, stamp, hour, true, []string{"true"}, lock)
		require.NoError(t, err)
		_, err = turn.acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(stamp, []byte(another), 0o600))
		lock.lives, turn.mine.state = lives, succeeded
		require.NoError(t, turn.end(t.Context()))
		last, err := readRecord(stamp)
		require.NoError(t, err)
		require.Equal(t, state, last.state)
	}
}

// TestATurnOfAnotherContainerIsNotOurs: also when that has the same name and pids.
func TestATurnOfAnotherContainerIsNotOurs(t *testing.T) {
	hour, err := parsePeriod("1h")
	require.NoError(t, err)
	stamp := filepath.Join(t.TempDir(), "x")
	turn, err := newTurn(io.Discard, stamp, hour, true, []string{"true"}, &turnsLock{})
	require.NoError(t, err)
	_, err = turn.acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, turn.ours())
	another := turn.mine
	another.began = another.began.Add(-5 * time.Second)
	require.NoError(t, os.WriteFile(stamp, []byte(another.render()), 0o600))
	require.ErrorIs(t, turn.ours(), errAnothers)
}

// TestATurnThatIsOverHidesNoLock: that nobody waits for a turn does not hide that the lock is still there.
func TestATurnThatIsOverHidesNoLock(t *testing.T) {
	hour, err := parsePeriod("1h")
	require.NoError(t, err)
	blocked := cli.Exit(cli.ExitBlocked, errors.New("held"))
	for said, over := range map[error]bool{
		blocked: true, context.Canceled: true, fmt.Errorf("%w: busy", errNotReleased): false,
		cli.Exit(cli.ExitBlocked, fmt.Errorf("%w: busy", errNotReleased)): false, errors.New("no such directory"): false,
	} {
		stamp := filepath.Join(t.TempDir(), "x")
		lock := &turnsLock{taking: func(ctx context.Context) error {
			require.NoError(t, os.WriteFile(stamp, fmt.Appendf(nil,
				"run      started\non       another\nprocess  1\nfrom     %s\n", time.Now().UTC().Truncate(time.Hour).Format(time.RFC3339)), 0o600))
			<-ctx.Done()
			return said
		}}
		turn, err := newTurn(io.Discard, stamp, hour, false, []string{"true"}, lock)
		require.NoError(t, err)
		_, err = turn.acquire(t.Context())
		var exit *cli.ExitStatus
		require.Equal(t, over, errors.As(err, &exit) && exit.Code == cli.ExitTurnOver, "%v: %v", said, err)
		if !over {
			require.ErrorIs(t, err, said)
		}
	}
}
