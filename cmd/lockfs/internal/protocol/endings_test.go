package protocol

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/swarm"
)

// locksOfOthers is a directory with a lock of each format that is somebody else's, and without any that is called none.
func locksOfOthers(t testing.TB) (dir string, run func(call string) clitest.Outcome) {
	t.Helper()
	dir, program := t.TempDir(), clitest.ProgramNamed(t, "lockfs")
	environment := []string{swarm.StateDirVariable + "=" + dir, TowerDirVariable + "=" + filepath.Join(dir, "locks")}
	run = func(call string) clitest.Outcome {
		return clitest.Execute(t, environment, program, strings.Fields(strings.ReplaceAll(call, "DIR", dir))...)
	}
	for _, made := range []string{"locks", "beads", "free"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, made), 0o700))
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	for path, content := range map[string]string{
		"locks/semaphore": semaphoreContent(1<<22, 0), "locks/pid": "1\n",
		"locks/swarm.lock": swarmContent("swarm", "v", ""), "beads/.exclusive-lock": beadsContent("them", 1, host),
		"locks/over": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600))
	}
	require.Equal(t, 0, run("tower acquire tower --request-id r --intent i --intent-version 1").Code)
	require.NoError(t, os.Remove(filepath.Join(dir, "locks", "over")))
	require.Equal(t, 0, run("run --once-per 9999h DIR/locks/over -- true").Code)
	return dir, run
}

// TestEndings provokes each row of the table of exit codes with each command that has it, where its specification has no
// other code, and finds the outcome that --json tells.
func TestEndings(t *testing.T) {
	const request = " --request-id other --intent i --intent-version 1"
	_, run := locksOfOthers(t)
	seen := map[int]bool{cli.ExitSignal: true} // see TestInterrupted
	for _, c := range []struct {
		ending, code int
		calls        []string
	}{
		{cli.ExitBlocked, cli.ExitBlocked, []string{
			"semaphore acquire DIR/locks/semaphore", "tower acquire tower" + request, "beads acquire DIR/beads --holder me",
			"semaphore run DIR/locks/semaphore -- true", "tower run tower --intent i --intent-version 1 -- true",
			"beads run DIR/beads --holder me -- true", "run DIR/locks/semaphore --nonblock -- true",
			"run --format tower DIR/locks/tower.lock --nonblock -- true", "run --format swarm DIR/locks/swarm.lock --nonblock -- true",
			"run --format beads DIR/beads --nonblock -- true", "run --format pid DIR/locks/pid --nonblock -- true",
		}},
		{cli.ExitBlocked, cli.ExitSwarm, []string{"swarm acquire swarm w"}},
		{cli.ExitTimedOut, cli.ExitTimedOut, []string{
			"semaphore acquire DIR/locks/semaphore --timeout 1ms", "tower acquire tower --wait 1ms" + request,
			"run --format pid DIR/locks/pid --wait 1ms -- true", "run --format tower DIR/locks/tower.lock --wait 1ms -- true",
			"beads run DIR/beads --holder me --wait 1ms -- true", "wait DIR/locks/pid --timeout 1ms",
		}},
		{cli.ExitTurnOver, cli.ExitTurnOver, []string{"run --once-per 9999h DIR/locks/over -- true"}},
		{cli.ExitNotOwner, cli.ExitNotOwner, []string{
			"semaphore release DIR/locks/semaphore --pid 1", "tower release tower --request-id other", "beads release DIR/beads --pid 2",
		}},
		{cli.ExitNotOwner, cli.ExitSwarm, []string{"swarm release swarm w"}},
		{cli.ExitNoLock, cli.ExitNoLock, []string{"semaphore release DIR/locks/none", "beads release DIR/free"}},
		{cli.ExitNoLock, cli.ExitSwarm, []string{"swarm release none w"}},
		{cli.ExitNoLock, 0, []string{"tower release none --request-id r"}},
		{cli.ExitLost, cli.ExitLost, []string{"tower heartbeat tower --request-id other", "tower heartbeat none --request-id r"}},
		{cli.ExitFailed, cli.ExitFailed, []string{
			"semaphore acquire DIR/none/x", "tower acquire tower --request-id r --intent i", "beads acquire DIR/none --holder me",
			"run DIR/none/x -- true", "tower check UPPER", "beads check DIR/none", "semaphore check DIR/none/x", "wait DIR/none/x",
			"forrst status k --endpoint http://127.0.0.1:1/forrst",
		}},
		{cli.ExitFailed, cli.ExitSwarm, []string{"swarm acquire t w 0", "swarm release ../x w", "swarm check ../x"}},
		{cli.ExitCannotRun, cli.ExitCannotRun, []string{"run DIR/locks/none -- /etc/passwd", "beads run DIR/free --holder me -- /etc/passwd"}},
		{cli.ExitNotFound, cli.ExitNotFound, []string{"semaphore run DIR/locks/none -- none", "run --format pid DIR/locks/none -- none"}},
	} {
		seen[c.ending] = true
		for _, call := range c.calls {
			done := run(call)
			require.Equal(t, c.code, done.Code, "%s: %s", call, done.Stderr)
			flag := " --json"
			if before, command, found := strings.Cut(call, " -- "); found {
				call, flag = before, " --json -- "+command
			}
			done = run(call + flag)
			require.Equal(t, c.code, done.Code, "%s: %s", call, done.Stderr)
			fields := fieldsOf(t, done.Stdout)
			require.Equal(t, cli.EndingOf(c.ending).Outcome, fields["outcome"], call)
			if c.code != 0 && c.ending != cli.ExitTurnOver {
				require.NotEmpty(t, fields["message"], call)
				require.Contains(t, done.Stderr, fields["message"], call)
			}
		}
	}
	for _, e := range cli.Endings {
		require.True(t, seen[e.Code], "%d %s is tested", e.Code, e.Outcome)
	}
}

// TestInterrupted: a signal that ends a wait is told from a lock that somebody has.
func TestInterrupted(t *testing.T) {
	dir, _ := locksOfOthers(t)
	for _, call := range []string{
		"run DIR/locks/semaphore --json -- true", "semaphore acquire DIR/locks/semaphore --timeout 1h --json",
		"tower acquire tower --request-id r --intent i --intent-version 1 --wait 1h --json",
		"beads run DIR/beads --holder me --wait 1h --json -- true", "run --slots 1 --format pid DIR/locks --json -- true",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "locks", "slot-1.lock"), []byte("1\n"), 0o600))
			for _, told := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
				cmd := exec.Command(clitest.ProgramNamed(t, "lockfs"), strings.Fields(strings.ReplaceAll(call, "DIR", dir))...)
				cmd.Env = clitest.Environment(TowerDirVariable + "=" + dir + "/locks")
				var out strings.Builder
				cmd.Stdout = &out
				require.NoError(t, cmd.Start())
				awaitWatching(t, cmd)
				require.NoError(t, cmd.Process.Signal(told))
				require.Error(t, cmd.Wait())
				require.Equal(t, cli.ExitSignal+int(told), cmd.ProcessState.ExitCode())
				require.Equal(t, "interrupted", fieldsOf(t, out.String())["outcome"])
			}
		})
	}
}

// TestJSONHasTheSameNames: whatever the format and the outcome, who has the lock is told in the same fields.
func TestJSONHasTheSameNames(t *testing.T) {
	_, run := locksOfOthers(t)
	now := time.Now()
	for format, calls := range map[string][]string{
		"semaphore": {"semaphore acquire DIR/locks/semaphore", "semaphore release DIR/locks/semaphore --pid 1", "semaphore check DIR/locks/semaphore"},
		"tower": {
			"tower acquire tower --request-id o --intent i --intent-version 1", "tower release tower --request-id o",
			"tower heartbeat tower --request-id o", "tower heartbeat tower --request-id r", "tower check tower",
		},
		"swarm": {"swarm acquire swarm w", "swarm release swarm w", "swarm check swarm"},
		"beads": {"beads acquire DIR/beads --holder me", "beads release DIR/beads --pid 2", "beads check DIR/beads"},
		"pid":   {"wait DIR/locks/pid --timeout 0s", "run --nonblock --format pid DIR/locks/pid"},
	} {
		for _, call := range calls {
			if strings.HasPrefix(call, "run ") {
				call += " --json -- true"
			} else {
				call += " --json"
			}
			fields := fieldsOf(t, run(call).Stdout)
			require.Equal(t, []any{"held", format}, []any{fields["state"], fields["format"]}, call)
			holder := map[string]string{"semaphore": strconv.Itoa(1 << 22), "tower": "r", "swarm": "v", "beads": "them", "pid": "1"}[format]
			require.Equal(t, holder, fields["holder"], call)
			require.NotEmpty(t, fields["path"], call)
			require.NotEmpty(t, fields["reason"], call)
			acquired, err := time.Parse(time.RFC3339, fields["acquired"].(string))
			require.NoError(t, err, call)
			require.InDelta(t, now.Sub(acquired).Seconds(), fields["age_seconds"], 60, call)
		}
	}
	for call, outcome := range map[string]string{
		"semaphore acquire DIR/locks/mine": outcomeAcquired, "swarm acquire work w 60": outcomeAcquired,
		"beads acquire DIR/free --holder me":                              outcomeAcquired,
		"tower acquire mine --request-id m --intent i --intent-version 1": outcomeAcquired,
	} {
		fields := fieldsOf(t, run(call+" --json").Stdout)
		require.Equal(t, []any{outcome, "held"}, []any{fields["outcome"], fields["state"]}, call)
	}
	for _, call := range []string{
		"semaphore release DIR/locks/mine", "swarm release work w", "beads release DIR/free", "tower release mine --request-id m",
	} {
		fields := fieldsOf(t, run(call+" --json").Stdout)
		require.Equal(t, []any{outcomeReleased, "free"}, []any{fields["outcome"], fields["state"]}, call)
		require.NotContains(t, fields, "holder", call)
	}
}
