package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/formats/swarm"
)

// repetition is what a line says twice: three words in a row, a path, or the same word next to itself. Empty: nothing.
func repetition(line string) string {
	var words []string
	seen := make(map[string]bool)
	for _, field := range strings.Fields(line) {
		word := strings.Trim(field, "`\"'()[]{};:,.")
		if word == "" {
			continue
		}
		words = append(words, word)
		last := words[max(0, len(words)-3):]
		of := []string{strings.Join(last, " ")}
		if len(last) < 3 {
			of = nil
		}
		if strings.HasPrefix(word, "/") {
			of = append(of, word)
		}
		if len(last) > 1 && last[len(last)-2] == word && strings.HasSuffix(field, ":") {
			return field
		}
		for _, what := range of {
			if seen[what] {
				return what
			}
			seen[what] = true
		}
	}
	return ""
}

func TestRepetition(t *testing.T) {
	for line, twice := range map[string]string{
		"open /x: open /x: no such file":                           "/x",
		"tower: tower: no such lock":                               "tower:",
		"it is not a lock (it is not valid)":                       "it is not",
		"not acquired: /a/x is held by 1; `cat /a/x.why` shows it": "",
		"request r does not have the lock a: request s has it":     "",
	} {
		require.Equal(t, twice, repetition(line), line)
	}
}

// wayObstructed has in its directory whatever is no lock that can be taken. The process with the number lives.
func wayObstructed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	object := func(fields map[string]any) string {
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		return string(text)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	now := time.Now().UTC()
	stamp := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	tower := func(name string, ago time.Duration) string {
		return object(map[string]any{
			"lock_version": "v1", "lock_name": name, "request_id": "req_1", "actor": "me", "intent": "deploy", "intent_version": "1", "host_id": host,
			"pid": os.Getpid(), "created_at": stamp(max(ago, 0)), "last_heartbeat_at": stamp(ago), "ttl_seconds": 900, "metadata": map[string]any{},
		})
	}
	for _, sub := range []string{"locks/directory.lock", "beads-directory/.exclusive-lock", "beads-inside/.beads", "beads-free"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "locks/link.lock")))
	require.NoError(t, os.Symlink("loop.lock", filepath.Join(dir, "locks/loop.lock")))
	write("locks/file", "x")
	large := strings.Repeat("x", 300<<10)
	write("locks/large.lock", large)
	write("beads-large/.exclusive-lock", large)
	write("beads-malformed/.exclusive-lock", `{"holder": 1}`)
	write("beads-held/.exclusive-lock", object(map[string]any{
		"holder": "me", "pid": os.Getpid(), "hostname": host, "started_at": stamp(0), "version": "1",
	}))
	write("locks/empty.lock", "")
	write("locks/semaphore.lock", fmt.Sprintf("pid=%d\ntimestamp=%d\ntag=mine\n", os.Getpid(), now.Unix()))
	write("locks/semaphore-malformed.lock", "pid=x\ntimestamp=\n")
	write("locks/pid.lock", fmt.Sprintln(os.Getpid()))
	write("locks/swarm.lock", object(map[string]any{"task_id": "swarm", "worker": "w", "acquired_at": stamp(0)}))
	write("locks/swarm-expires.lock", object(map[string]any{
		"task_id": "swarm-expires", "worker": "w", "acquired_at": stamp(0), "expires_at": stamp(-time.Hour),
	}))
	write("locks/swarm-other.lock", object(map[string]any{"task_id": "other", "worker": "w", "acquired_at": stamp(0)}))
	write("locks/tower.lock", tower("tower", 0))
	write("locks/tower-stale.lock", tower("tower-stale", time.Hour))
	write("locks/tower-ahead.lock", tower("tower-ahead", -24*time.Hour))
	write("locks/tower-other.lock", tower("tower", 0))
	return dir
}

// TestMessagesSayNothingTwice provokes whatever the commands can have to say of what is wrong. The test of the same name
// in test/ does so on a mount.
func TestMessagesSayNothingTwice(t *testing.T) {
	t.Parallel()
	dir := wayObstructed(t)
	const request = " --request-id r --intent i --intent-version 1"
	var calls []string
	names := strings.Fields("directory link loop large empty semaphore semaphore-malformed pid swarm swarm-expires swarm-other tower " +
		"tower-stale tower-ahead tower-other a/b UP file/x")
	for _, name := range names {
		for _, call := range []string{
			"tower acquire NAME" + request, "tower release NAME --request-id r", "tower heartbeat NAME --request-id r",
			"tower run NAME --intent i --intent-version 1 -- false", "swarm acquire NAME w", "swarm release NAME z", "swarm check NAME",
		} {
			calls = append(calls, strings.ReplaceAll(call, "NAME", name))
		}
	}
	paths := []string{"DIR/locks", "DIR/none/x", "DIR/locks/file/x", "/proc/version/x", "DIR/" + strings.Repeat("n", 300)}
	for _, name := range names {
		paths = append(paths, "DIR/locks/"+name+".lock")
	}
	for _, path := range paths {
		for _, call := range []string{
			"semaphore acquire PATH --pid 1", "semaphore acquire PATH --pid 1 --timeout 1ms", "semaphore release PATH --pid 2147483646",
			"semaphore check PATH", "semaphore run PATH -- false", "wait PATH --timeout 0s", "wait PATH --timeout 0s --json", "rm PATH", "rm --force PATH",
			"run --format semaphore PATH --nonblock -- false", "run --format tower PATH --nonblock -- false",
			"run --format swarm PATH --nonblock -- false", "run --format beads PATH --nonblock -- false",
			"run --format pid PATH --wait 1ms -- false", "run --slots 2 PATH --nonblock -- false", "run --once-per 10m PATH -- false",
		} {
			calls = append(calls, strings.ReplaceAll(call, "PATH", path))
		}
	}
	for _, of := range []string{"directory", "inside", "large", "malformed", "held", "none"} {
		for _, call := range []string{
			"beads acquire DB --holder me", "beads release DB", "beads check DB", "beads run DB --holder me -- false",
			"run --format beads DB --nonblock -- false", "wait DB --timeout 0s",
		} {
			calls = append(calls, strings.ReplaceAll(call, "DB", "DIR/beads-"+of))
		}
	}
	const unanswered = " --servers 127.0.0.1:1,127.0.0.1:2 --timeout 50ms"
	calls = append(calls,
		"tower list --dir DIR/locks/file", "tower list --dir DIR/none", "tower acquire q --dir DIR/locks/file"+request,
		"tower acquire q --audit-log /nowhere/x"+request, "tower acquire q --audit-log DIR/locks"+request, "tower acquire q --mode z"+request,
		"tower acquire q --metadata a"+request, "tower acquire ${params.x}"+request, "tower", "tower other",
		"tower run q --intent i --intent-version 1 -- /nowhere/command", "run DIR/new -- /nowhere/command", "run DIR/new -- no-such-command",
		"run DIR/new -- /etc/passwd", "run DIR/new -- DIR", "run DIR/new", "run DIR/a DIR/b -- true", "run --slots 0 DIR/a -- true",
		"run --once-per day@25:00 DIR/a -- true", "run --wait 1 DIR/a -- true", "run --tag \xff DIR/a -- true", "swarm other", "swarm acquire t w -1",
		"swarm release none w", "beads acquire DIR/beads-free", "beads acquire DIR/beads-free --holder me --pid 2147483646", "beads other",
		"semaphore other", "semaphore acquire DIR/a --pid 2147483646", "rm DIR/none", "rm DIR/locks/pid.lock DIR/none", "events --since x",
		"rule set x", "rule set [ --guard host", "rule other", "host other", "session other", "member other", "forrst other",
		"forrst status k --endpoint http://127.0.0.1:1/forrst", "forrst status k --endpoint x", "server inspect --data DIR/none",
		"server inspect --data DIR/locks/file", "server --data DIR/data --name a", "dev DIR/locks/file/x", "bench /nowhere",
		"status"+unanswered, "member list"+unanswered,
	)
	program := clitest.ProgramNamed(t, "lockfs")
	environment := []string{swarm.StateDirVariable + "=" + dir, protocol.TowerDirVariable + "=" + dir + "/locks"}
	for _, call := range calls {
		words := strings.Fields(strings.ReplaceAll(call, "DIR", dir))
		done := clitest.Execute(t, environment, program, words...)
		if done.Code == 0 { // somebody could take it
			continue
		}
		for line := range strings.Lines(done.Stderr) {
			if strings.HasPrefix(line, "lockfs: ") {
				require.Empty(t, repetition(line), "lockfs %s\n%s", call, done.Stderr)
			}
		}
	}
}
