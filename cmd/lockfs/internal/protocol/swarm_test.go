package protocol

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/swarm"
)

// swarmState is a state directory, and what runs `lockfs swarm` there.
func swarmState(t testing.TB) (dir string, run func(args ...string) clitest.Outcome) {
	state, program := t.TempDir(), clitest.ProgramNamed(t, "lockfs")
	return filepath.Join(state, "locks"), func(args ...string) clitest.Outcome {
		t.Helper()
		return clitest.Execute(t, []string{swarm.StateDirVariable + "=" + state}, program, append([]string{"swarm"}, args...)...)
	}
}

func writeSwarm(t testing.TB, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

func swarmContent(task, worker, expires string) string {
	return fmt.Sprintf(`{"task_id":%q,"worker":%q,"acquired_at":"2025-02-02T10:00:00Z","expires_at":%q}`, task, worker, expires)
}

const longAgo = "2025-02-02T11:00:00Z"

func TestSwarmNineSteps(t *testing.T) {
	for name, command := range map[string][]string{
		"as lockfs swarm":  {clitest.ProgramNamed(t, "lockfs"), "swarm"},
		"as swarm_lock.sh": {clitest.ProgramNamed(t, SwarmScript)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := []string{swarm.StateDirVariable + "=" + t.TempDir()}
			done := clitest.Execute(t, state, "testdata/swarm_nine_steps.sh", command...)
			require.Equal(t, 0, done.Code, "%s%s", done.Stdout, done.Stderr)
			require.Equal(t, 9, strings.Count(done.Stdout, "PASS "), done.Stdout)
			require.NotContains(t, done.Stdout, "FAIL")
		})
	}
}

func TestSwarmSays(t *testing.T) {
	dir, run := swarmState(t)
	require.Equal(t, clitest.Outcome{Stdout: "No locks\n"}, run("list"))
	require.DirExists(t, dir)
	require.Equal(t, clitest.Outcome{Stdout: "No lock for a\n"}, run("check", "a"))
	taken := run("acquire", "a", "w", "3600")
	require.Equal(t, 0, taken.Code, taken.Stderr)
	require.Regexp(t, `^Lock acquired\na: Active\n  worker: w\n  acquired_at: \S+Z\n  expires_at: \S+Z\n$`, taken.Stdout)

	writeSwarm(t, dir, "b.lock", swarmContent("b", "v", longAgo))
	writeSwarm(t, dir, "c.lock", swarmContent("other", "v", longAgo))
	writeSwarm(t, dir, "d.lock", "")
	writeSwarm(t, dir, ".lockfs-draft", "")
	writeSwarm(t, dir, "readme", "")
	listed := run("list")
	require.Equal(t, 0, listed.Code)
	require.Regexp(t, `^a: Active \(worker: w, acquired: \S+Z\)\n`+
		`b: Expired \(worker: v, acquired: 2025-02-02T10:00:00Z\)\n`+
		`c: Unreadable \(task_id: is that of another task\)\n`+
		`d: Unreadable \(unexpected EOF\)\n$`, listed.Stdout)

	var locks []lockState
	require.NoError(t, json.Unmarshal([]byte(run("list", "--json").Stdout), &locks))
	require.Len(t, locks, 4)
	require.Equal(t, []string{"held", "stale", "invalid", "invalid"},
		[]string{locks[0].State, locks[1].State, locks[2].State, locks[3].State})
	require.Equal(t, filepath.Join(dir, "a.lock"), locks[0].Path)
	require.Equal(t, time.Hour, locks[0].Expires.Sub(*locks[0].Acquired), "exactly")

	require.JSONEq(t, `{"state":"free","format":"swarm","task_id":"zz","path":"`+filepath.Join(dir, "zz.lock")+`"}`,
		run("check", "zz", "--json").Stdout)
	one := fieldsOf(t, run("acquire", "e", "w", "--json").Stdout)
	require.Equal(t, []any{"acquired", "held", "w"}, []any{one["outcome"], one["state"], one["holder"]})
	require.NotContains(t, one, "expires")
	require.Equal(t, clitest.Outcome{Stdout: "Lock released: e (worker: w)\n"}, run("release", "e", "w"))
}

// TestSwarmFailures provokes every reason for exit code 1, and none of them changes anything.
func TestSwarmFailures(t *testing.T) {
	dir, run := swarmState(t)
	writeSwarm(t, dir, "ever.lock", swarmContent("ever", "v", ""))
	writeSwarm(t, dir, "long.lock", swarmContent("long", "v", "2999-01-01T00:00:00Z"))
	writeSwarm(t, dir, "half.lock", swarmContent("half", "v", longAgo)[:20])
	writeSwarm(t, dir, "moved.lock", swarmContent("other", "v", longAgo))
	writeSwarm(t, filepath.Dir(dir), "outside.lock", swarmContent("outside", "v", longAgo))
	require.NoError(t, os.Symlink("../outside.lock", filepath.Join(dir, "link.lock")))
	before := snapshot(t, filepath.Dir(dir))

	for call, problem := range map[string]string{
		"acquire ever w":          "lockfs: not acquired: ever is locked by v since 2025-02-02T10:00:00Z, and does not expire; wait until its worker",
		"acquire long v":          "and expires at 2999-01-01T00:00:00Z; wait until then",
		"acquire half w":          "cannot be understood, so it counts as held: unexpected EOF; look at " + dir + "/half.lock",
		"acquire moved w":         "task_id: is that of another task",
		"acquire link w":          "not a regular file",
		"acquire t w 0":           "ttl_seconds: 0 is not a number from 1 to 9223372036; leave it out",
		"acquire t w -1":          "ttl_seconds: -1 is not a number from 1 to 9223372036; leave it out",
		"acquire t w -0.5":        "ttl_seconds: -0.5 is not",
		"acquire t w -x":          "unknown shorthand flag: 'x' in -x; see `lockfs swarm acquire --help`",
		"acquire t w 1.5":         "ttl_seconds: 1.5 is not",
		"acquire t w 99999999999": "ttl_seconds: 99999999999 is not",
		"acquire t":               "usage: lockfs swarm acquire TASK WORKER [TTL_SECONDS]",
		"acquire ../outside w":    "task_id: must not begin with a dot",
		"acquire a/../b w":        "task_id: must be printable and have no slashes",
		"release ever w":          "not released: ever is locked by v, not by w",
		"release none w":          "not released: there is no lock for none",
		"release half v":          "cannot be understood",
		"release moved v":         "cannot be understood",
		"release link v":          "not a regular file",
		"release ../outside v":    "task_id: must not begin with a dot",
		"release ever":            "usage: lockfs swarm release TASK WORKER",
		"check half":              "cannot be understood; look at " + dir + "/half.lock",
		"check half --json":       "cannot be understood; look at " + dir + "/half.lock",
		"check ../outside":        "task_id: must not begin with a dot",
		"check":                   "usage: lockfs swarm check TASK",
		"list all":                "usage: lockfs swarm list",
		"steal ever w":            "unknown subcommand steal",
		"":                        "give a subcommand",
	} {
		done := run(strings.Fields(call)...)
		require.Equal(t, 1, done.Code, call)
		require.Contains(t, done.Stderr, problem, call)
		if strings.Contains(problem, "locked by v since") || strings.Contains(problem, "expires at") ||
			strings.HasPrefix(call, "acquire") && strings.Contains(done.Stderr, "so it counts as held") {
			require.Equal(t, "Lock already exists\n", done.Stdout, "as the specification's snippet does")
		} else {
			require.NotContains(t, done.Stdout, "Lock ", call)
		}
	}
	blocked := run("acquire", "long", "w", "--json")
	require.Equal(t, 1, blocked.Code)
	held := fieldsOf(t, blocked.Stdout)
	require.Equal(t, []any{"held", "v"}, []any{held["outcome"], held["holder"]})
	require.Contains(t, run().Stderr, "Usage:")
	require.Equal(t, before, snapshot(t, filepath.Dir(dir)))
}

// snapshot is all that is in a directory, by path.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = entry.Type().String() + string(content)
		return err
	}))
	return files
}

func TestSwarmDirThatCannotBeMade(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, os.Symlink("not-there", filepath.Join(state, swarm.LockDir)))
	done := clitest.Execute(t, []string{swarm.StateDirVariable + "=" + state}, clitest.ProgramNamed(t, "lockfs"), "swarm", "acquire", "t", "w")
	require.Equal(t, 1, done.Code)
	require.Contains(t, done.Stderr, "the directory "+state+"/locks cannot be made: give another with SWARM_STATE_DIR")
}

func TestSwarmScriptHasItsOwnName(t *testing.T) {
	script, state := clitest.ProgramNamed(t, SwarmScript), []string{swarm.StateDirVariable + "=" + t.TempDir()}
	done := clitest.Execute(t, state, script)
	require.Equal(t, 1, done.Code)
	require.Contains(t, done.Stderr, "swarm_lock.sh [command]")
	done = clitest.Execute(t, state, script, "steal")
	require.Equal(t, 1, done.Code)
	require.Contains(t, done.Stderr, "swarm_lock.sh: unknown subcommand steal")
	done = clitest.Execute(t, state, script, "acquire", "--help")
	require.Equal(t, 0, done.Code)
	require.Contains(t, done.Stdout, "\n  swarm_lock.sh acquire task-001 worker-0 3600\n")
	require.NotContains(t, done.Stdout, "lockfs swarm")
	done = clitest.Execute(t, state, script, "release", "t", "w")
	require.Regexp(t, "^swarm_lock.sh: not released: there is no lock", done.Stderr)
	done = clitest.Execute(t, state, script)
	require.NotContains(t, done.Stderr, "lockfs swarm")
	require.NotContains(t, done.Stderr, "lockfs:")
}

// TestSwarmOneOfManyProcesses has many processes want one task, which is free or has expired.
func TestSwarmOneOfManyProcesses(t *testing.T) {
	dir, run := swarmState(t)
	for _, expired := range []bool{false, true, true} {
		require.NoError(t, os.RemoveAll(dir))
		if expired {
			writeSwarm(t, dir, "t.lock", swarmContent("t", "w0", longAgo))
		}
		const processes = 10
		var outcomes [processes]clitest.Outcome
		var all sync.WaitGroup
		for i := range processes {
			all.Go(func() { outcomes[i] = run("acquire", "t", fmt.Sprintf("w%d", i%3)) })
		}
		all.Wait()
		won := 0
		for _, done := range outcomes {
			if done.Code == 0 {
				won++
				continue
			}
			require.Equal(t, 1, done.Code)
			require.Contains(t, done.Stderr, "not acquired: t is locked by w")
		}
		require.Equal(t, 1, won, "%+v", outcomes)
		require.Len(t, snapshot(t, dir), 1, "nothing else is left")
	}
}

// TestProtocolCommandsHaveHelp: each says more than its name, names its exit codes, and shows an example.
func TestProtocolCommandsHaveHelp(t *testing.T) {
	for _, parent := range []*cobra.Command{swarmCommand(), beadsCommand()} {
		for _, cmd := range append(parent.Commands(), parent) {
			require.NotEmpty(t, cmd.Long, cmd.CommandPath())
			require.Contains(t, cmd.Example, "lockfs "+parent.Name(), cmd.CommandPath())
			if cmd != parent {
				require.Regexp(t, `The exit code is|Exit codes:`, cmd.Long, cmd.CommandPath())
			}
		}
	}
}
