package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/formats/tower"
)

// towers runs `lockfs tower` as processes on one directory.
type towers struct {
	testing.TB
	dir   string // of the locks
	audit string
	env   []string
}

func newTowers(t testing.TB) *towers {
	t.Helper()
	root := t.TempDir()
	return &towers{TB: t, dir: filepath.Join(root, "locks"), audit: filepath.Join(root, "audit.jsonl")}
}

func (t *towers) start(args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"tower"}, args...)...)
	cmd.Env = clitest.Environment(TowerDirVariable+"="+t.dir, "LOCKFS_AUDIT_LOG="+t.audit,
		"LOCKFS_TOKEN=", "ACTOR=claude-code", "DIR="+t.dir)
	cmd.Env = append(cmd.Env, t.env...)
	return cmd
}

type towerEnd struct {
	code        int
	out, errors string
}

func (t *towers) run(args ...string) towerEnd {
	t.Helper()
	return t.finish(t.start(args...))
}

func (t *towers) finish(cmd *exec.Cmd) towerEnd {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return towerEnd{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (t *towers) succeeds(args ...string) towerEnd {
	t.Helper()
	o := t.run(args...)
	require.Zero(t, o.code, o.errors)
	return o
}

// fails runs a command that has to end with this code and say this.
func (t *towers) fails(code int, problem string, args ...string) towerEnd {
	t.Helper()
	o := t.run(args...)
	require.Equal(t, code, o.code, o.errors)
	require.Contains(t, o.errors, problem)
	return o
}

func (t *towers) take(name, requestID string, more ...string) towerEnd {
	t.Helper()
	return t.succeeds(append([]string{"acquire", name, "--request-id", requestID, "--intent", "deploy-app", "--intent-version", "1.2.0"}, more...)...)
}

func (t *towers) path(name string) string { return filepath.Join(t.dir, name+".lock") }

var stamps = regexp.MustCompile(`("(created_at|last_heartbeat_at)": )"[^"]*"`)

// age makes a lock and its last heartbeat older.
func (t *towers) age(name string, by time.Duration) string {
	t.Helper()
	content, err := os.ReadFile(t.path(name))
	require.NoError(t, err)
	content = stamps.ReplaceAll(content, []byte(`$1"`+time.Now().Add(-by).UTC().Format(time.RFC3339)+`"`))
	require.NoError(t, os.WriteFile(t.path(name), content, 0o600))
	return string(content)
}

// events gives the audit log without what differs from run to run.
func (t *towers) events() (events []map[string]any) {
	t.Helper()
	content, err := os.ReadFile(t.audit)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var event map[string]any
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339, event["timestamp"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
		delete(event, "timestamp")
		events = append(events, event)
	}
}

func fieldsOf(t testing.TB, text string) (fields map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &fields), text)
	return fields
}

const prod = "money-tracker-production"

func TestTowerAcquire(t *testing.T) {
	c := newTowers(t)
	o := c.take("${params.app}-${params.environment}", "req_abc123", "--param", "app=money-tracker", "--param", "environment=production",
		"--ttl", "30m", "--metadata", "ticket=X-1", "--metadata", "note=a=b, c")
	require.Equal(t, "Lock acquired: "+prod+"\n", o.out)
	content, err := os.ReadFile(c.path(prod))
	require.NoError(t, err)
	fields := fieldsOf(t, string(content))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, fields["created_at"], fields["last_heartbeat_at"])
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, fields["created_at"])
	delete(fields, "created_at")
	delete(fields, "last_heartbeat_at")
	require.Equal(t, map[string]any{
		"lock_version": "v1", "lock_name": prod, "request_id": "req_abc123", "actor": "claude-code", "intent": "deploy-app",
		"intent_version": "1.2.0", "host_id": host, "pid": float64(os.Getpid()), "ttl_seconds": 1800.0,
		"metadata": map[string]any{"ticket": "X-1", "note": "a=b, c"},
	}, fields)
	require.Equal(t, []map[string]any{{
		"event": "lock_acquired", "request_id": "req_abc123", "lock_name": prod, "lock_path": c.path(prod), "ttl_seconds": 1800.0,
	}}, c.events())
	info, err := os.Stat(c.dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	taken := fieldsOf(t, c.take("b", "req_1", "--json", "--ttl", "60", "--actor", "me").out)
	require.Equal(t, "acquired", taken["outcome"])
	require.Equal(t, c.path("b"), taken["path"])
	require.Equal(t, "me", taken["lock"].(map[string]any)["actor"])
	require.NotContains(t, taken, "token")

	require.NoError(t, os.Chmod(c.dir, 0o755))
	require.Contains(t, c.take("c", "req_1").errors, "warning: "+c.dir+" has mode 0755, and should have 0700")
}

func TestTowerAcquireBlocked(t *testing.T) {
	c := newTowers(t)
	c.take(prod, "req_xyz789")
	again := []string{"acquire", prod, "--request-id", "req_2", "--intent", "deploy-app", "--intent-version", "1.2.0"}
	for _, more := range [][]string{nil, {"--force-lock"}} {
		fields := fieldsOf(t, c.fails(cli.ExitBlocked, "wait until it is released", append(again, more...)...).out)
		held := fields["held_by"].(map[string]any)
		require.NotEmpty(t, held["created_at"])
		require.NotEmpty(t, held["last_heartbeat_at"])
		delete(held, "created_at")
		delete(held, "last_heartbeat_at")
		require.Equal(t, map[string]any{
			"error": "lock_blocked", "lock_name": prod, "suggestion": "Wait for completion or use --force-lock if stale",
			"held_by": map[string]any{"request_id": "req_xyz789", "actor": "claude-code", "intent": "deploy-app"},
		}, fields)
	}
	fields := fieldsOf(t, c.fails(cli.ExitTimedOut, "not acquired within 50ms", append(again, "--wait", "50ms")...).out)
	require.Equal(t, "lock_blocked", fields["error"])

	before := c.age(prod, 1800*time.Second)
	fields = fieldsOf(t, c.fails(cli.ExitBlocked, "--force-lock", again...).out)
	require.InDelta(t, 1800, fields["age_seconds"], 60)
	since, err := time.Parse(time.RFC3339, fields["stale_since"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-900*time.Second), since, time.Minute)
	delete(fields, "age_seconds")
	delete(fields, "stale_since")
	old, err := tower.Parse([]byte(before))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"error": "lock_stale", "lock_name": prod, "ttl_seconds": 900.0,
		"suggestion": "Use --force-lock to acquire (stale lock will be logged)",
		"held_by": map[string]any{
			"request_id": "req_xyz789", "actor": "claude-code", "host_id": old.HostID, "pid": float64(old.PID),
		},
	}, fields)

	require.NoError(t, os.Remove(c.audit))
	o := c.succeeds(append(again, "--force-lock")...)
	require.Equal(t, "Lock acquired: "+prod+" (stolen from request req_xyz789)\n", o.out)
	events := c.events()
	require.Equal(t, map[string]any{
		"event": "lock_stolen", "request_id": "req_2", "lock_name": prod, "reason": "stale_lock_forced",
		"previous_lock_hash": tower.Hash([]byte(before)),
		"previous_lock": map[string]any{
			"request_id": "req_xyz789", "actor": "claude-code", "intent": "deploy-app", "host_id": old.HostID, "pid": float64(old.PID),
			"created_at": old.CreatedAt.Format(time.RFC3339), "last_heartbeat_at": old.LastHeartbeatAt.Format(time.RFC3339),
		},
	}, events[0])
	require.Equal(t, "lock_acquired", events[1]["event"])
	require.Len(t, events, 2)

	require.NoError(t, os.WriteFile(c.path("broken"), []byte("{"), 0o600))
	again[1] = "broken"
	fields = fieldsOf(t, c.fails(cli.ExitBlocked, "remove it if nobody uses it", append(again, "--force-lock")...).out)
	require.Equal(t, "lock_invalid", fields["error"])
}

func TestTowerAcquireWaits(t *testing.T) {
	c := newTowers(t)
	c.take("a", "req_1")
	waiter := c.start("acquire", "a", "--request-id", "req_2", "--intent", "i", "--intent-version", "1", "--wait", "1m")
	require.NoError(t, waiter.Start())
	awaitWatching(t, waiter)
	c.succeeds("release", "a", "--request-id", "req_1")
	require.NoError(t, waiter.Wait())
	c.fails(cli.ExitLost, `request "req_2" holds it`, "heartbeat", "a", "--request-id", "req_1")

	waiter = c.start("acquire", "a", "--request-id", "req_3", "--intent", "i", "--intent-version", "1", "--wait", "1h")
	require.NoError(t, waiter.Start())
	awaitWatching(t, waiter)
	require.NoError(t, waiter.Process.Signal(syscall.SIGTERM))
	require.Error(t, waiter.Wait())
	require.Equal(t, cli.ExitSignal+int(syscall.SIGTERM), waiter.ProcessState.ExitCode())
}

func TestTowerModes(t *testing.T) {
	c := newTowers(t)
	c.take("a", "req_1")
	observe := []string{"acquire", "a", "--mode", "observe"}
	require.Contains(t, c.succeeds(observe...).out, "No lock acquired")
	require.JSONEq(t, `{"outcome":"not_needed"}`, c.succeeds(append(observe, "--json")...).out)
	require.Equal(t, "ran\n", c.succeeds("run", "a", "--mode", "observe", "--", "echo", "ran").out)
	require.Len(t, c.events(), 1)

	const warning = "warning: Mutate intent without lock - concurrent execution possible"
	o := c.succeeds("run", "--", "echo", "ran")
	require.Equal(t, "ran\n", o.out)
	require.Contains(t, o.errors, warning)
	require.Contains(t, c.succeeds("run", "--mode", "reconcile", "--", "true").errors, "warning: Reconcile intent without lock")
	c.fails(5, warning, "run", "--", "sh", "-c", "exit 5")
	c.fails(cli.ExitFailed, "NAME is empty", "run", "", "--", "true")
	c.fails(cli.ExitFailed, `"other" is none of observe`, "run", "a", "--mode", "other", "--", "true")
}

func TestTowerRelease(t *testing.T) {
	c := newTowers(t)
	for _, want := range []struct {
		result, event map[string]any
		args          []string
	}{
		{args: nil, event: map[string]any{"result": "success"}},
		{args: []string{"--result", "failure"}, event: map[string]any{"result": "failure"}},
		{
			args:  []string{"--result", "failure", "--failure-step", "deploy_manifests"},
			event: map[string]any{"result": "failure", "failure_step": "deploy_manifests"},
		},
	} {
		c.take("a", "req_abc123")
		require.NoError(t, os.Remove(c.audit))
		o := c.succeeds(append([]string{"release", "a", "--request-id", "req_abc123"}, want.args...)...)
		require.Equal(t, "Lock released: a\n", o.out)
		require.NoFileExists(t, c.path("a"))
		events := c.events()
		require.Less(t, events[0]["held_duration_seconds"], 60.0)
		delete(events[0], "held_duration_seconds")
		want.event["event"], want.event["request_id"], want.event["lock_name"] = "lock_released", "req_abc123", "a"
		require.Equal(t, []map[string]any{want.event}, events)
	}
	require.NoError(t, os.Remove(c.audit))
	require.Contains(t, c.succeeds("release", "a", "--request-id", "req_1").errors, "warning: there is no "+c.path("a"))
	c.take("a", "req_1")
	c.fails(cli.ExitNotOwner, `request "req_1" holds it`, "release", "a", "--request-id", "req_2")
	c.fails(cli.ExitFailed, "--result", "release", "a", "--request-id", "req_1", "--result", "perhaps")
	c.fails(cli.ExitFailed, "--failure-step", "release", "a", "--request-id", "req_1", "--failure-step", "x")
	require.FileExists(t, c.path("a"))
	require.Len(t, c.events(), 1)
}

func TestTowerExplainBusy(t *testing.T) {
	err := explainBusy(&os.PathError{Op: "remove", Path: "/locks/a.lock", Err: syscall.EBUSY})
	require.ErrorContains(t, err, "renew or release the lock there")
	require.Equal(t, io.EOF, explainBusy(io.EOF))
	require.NoError(t, explainBusy(nil))
}

// It is in-process, for what cannot be removed by root is hard to come by.
func TestTowerReleaseFailed(t *testing.T) {
	c := newTowers(t)
	audit := &auditor{path: c.audit, warn: io.Discard}
	require.NoError(t, os.MkdirAll(c.path("a"), 0o700)) // nor can it be read
	err := releaseTower(tower.Dir{Path: c.dir, Now: time.Now}, "a", "req_1", &towerOutcome{}, audit)
	require.ErrorContains(t, err, "remove it with `rm "+c.path("a")+"`")
	require.Equal(t, cli.ExitFailed, cli.Report(io.Discard, "lockfs", cli.Failed(err)))
	events := c.events()
	require.NotEmpty(t, events[0]["error"])
	delete(events[0], "error")
	require.Equal(t, []map[string]any{{
		"event": "lock_release_failed", "request_id": "req_1", "lock_name": "a", "lock_path": c.path("a"), "action": "manual_cleanup_required",
	}}, events)
}

func TestTowerHeartbeat(t *testing.T) {
	c := newTowers(t)
	c.take("a", "req_1", "--ttl", "3")
	before := c.age("a", time.Hour)
	c.succeeds("heartbeat", "a", "--request-id", "req_1")
	after, err := os.ReadFile(c.path("a"))
	require.NoError(t, err)
	l, err := tower.Parse(after)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), l.LastHeartbeatAt, 30*time.Second)
	back, err := tower.Heartbeat(after, time.Now())
	require.NoError(t, err)
	forth, err := tower.Heartbeat([]byte(before), time.Now())
	require.NoError(t, err)
	require.Equal(t, string(forth), string(back), "nothing else has changed")

	c.fails(cli.ExitLost, "there is none", "heartbeat", "b", "--request-id", "req_1")
	c.fails(cli.ExitLost, `request "req_1" holds it`, "heartbeat", "a", "--request-id", "req_2")
	c.fails(cli.ExitFailed, "give at most 1s, a third of the ttl", "heartbeat", "a", "--request-id", "req_1", "--every", "2s")
	c.fails(cli.ExitFailed, "give the --request-id", "heartbeat", "a")
	c.fails(cli.ExitFailed, "give the --request-id", "release", "a")

	keep := func() *exec.Cmd {
		keeper := c.start("heartbeat", "a", "--request-id", "req_1", "--every", "20ms")
		require.NoError(t, keeper.Start())
		awaitWatching(t, keeper)
		c.age("a", time.Hour)
		require.Eventually(t, func() bool {
			content, err := os.ReadFile(c.path("a"))
			require.NoError(t, err)
			l, err := tower.Parse(content)
			return err == nil && !l.Stale(time.Now())
		}, time.Minute, 10*time.Millisecond)
		return keeper
	}
	keeper := keep()
	require.NoError(t, keeper.Process.Signal(os.Interrupt))
	require.NoError(t, keeper.Wait(), "that is how it ends")
	keeper = keep()
	require.NoError(t, os.Remove(c.path("a")))
	require.Error(t, keeper.Wait())
	require.Equal(t, cli.ExitLost, keeper.ProcessState.ExitCode())
	events := c.events()
	require.Equal(t, "heartbeat_failed", events[len(events)-1]["event"])
}

func TestTowerHeartbeatFailures(t *testing.T) {
	c := newTowers(t)
	c.take("a", "req_1")
	content, err := os.ReadFile(c.path("a"))
	require.NoError(t, err)
	lock, err := tower.Parse(content)
	require.NoError(t, err)
	require.NoError(t, os.Remove(c.audit))
	require.NoError(t, os.WriteFile(c.path("a"), []byte("{"), 0o600))
	warned := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		done <- keepTower(t.Context(), writerFunc(func(line []byte) { warned <- string(line) }),
			tower.Dir{Path: c.dir, Now: time.Now}, lock, time.Now(), time.Millisecond, &auditor{path: c.audit}, new(tower.LockFile))
	}()
	for i := range 4 {
		require.Contains(t, <-warned, fmt.Sprintf("heartbeat of a failed, %d in a row", i+1))
	}
	require.NoError(t, os.Remove(c.path("a")))
	require.Error(t, <-done)
	events := c.events()
	require.Len(t, events, 1, "at the third, and no more")
	require.NotEmpty(t, events[0]["error"])
	delete(events[0], "error")
	require.Equal(t, map[string]any{
		"event": "heartbeat_failed", "request_id": "req_1", "lock_name": "a", "lock_path": c.path("a"), "consecutive_failures": 3.0,
	}, events[0])
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

func TestTowerCheckAndList(t *testing.T) {
	c := newTowers(t)
	c.fails(cli.ExitFailed, "--dir", "check", "a")
	c.fails(cli.ExitFailed, "--dir", "list")
	c.take("active", "req_1", "--metadata", "k=v")
	c.take("stale", "req_2")
	c.age("stale", 20*time.Minute)
	require.NoError(t, os.WriteFile(c.path("invalid"), nil, 0o600))
	for state, code := range map[string]int{"stale": cli.ExitStale, "active": cli.ExitActive, "free": cli.ExitFree, "invalid": cli.ExitInvalid} {
		o := c.fails(code, "", "check", state)
		require.Empty(t, o.errors)
		first, _, _ := strings.Cut(o.out, "\n")
		require.Equal(t, state, first)
		fields := fieldsOf(t, c.fails(code, "", "check", state, "--json").out)
		require.Equal(t, map[string]string{"active": "held"}[state]+strings.TrimPrefix(state, "active"), fields["state"])
		require.Equal(t, c.path(state), fields["path"])
	}
	require.Contains(t, c.run("check", "active").out, `metadata           {"k":"v"}`)
	fields := fieldsOf(t, c.run("check", "stale", "--json").out)
	require.Equal(t, "req_2", fields["lock"].(map[string]any)["request_id"])
	require.Equal(t, "req_2", fields["holder"])

	require.NotContains(t, fields, "warning")
	c.age("active", -time.Hour)
	ahead := c.run("check", "active").out
	require.Regexp(t, `(?m)^warning +its last heartbeat lies 3\d\d\d s ahead of this host's clock`, ahead)
	require.Contains(t, ahead, "(0s ago)")
	fields = fieldsOf(t, c.run("check", "active", "--json").out)
	require.Contains(t, fields["warning"], "ahead of this host's clock")
	require.EqualValues(t, 0, fields["age_seconds"])

	o := c.succeeds("list")
	require.Len(t, strings.Split(o.out, "\n"), 5)
	require.Regexp(t, `(?m)^NAME +STATE +REQUEST +ACTOR +INTENT +HOST +HEARTBEAT +TTL$`, o.out)
	require.Regexp(t, `(?m)^stale +stale +req_2 +claude-code +deploy-app .* 20m\S* +15m$`, o.out)
	var listed []map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.succeeds("list", "--json").out), &listed))
	require.Len(t, listed, 3)
}

func TestTowerAcquireSaysThatThereIsNoAuditLog(t *testing.T) {
	c := newTowers(t)
	require.Empty(t, c.take("a", "req_1").errors)
	c.audit = ""
	const none = "there is no audit log"
	require.Contains(t, c.take("b", "req_1").errors, none)
	require.Contains(t, c.succeeds(c.runArgs("c", "--", "true")...).errors, none)
	require.NotContains(t, c.fails(cli.ExitBlocked, "is held by", c.runArgs("a", "--", "true")...).errors, none)
}

// TestTowerRequestIDs has those that the specification's own scripts accept.
func TestTowerRequestIDs(t *testing.T) {
	c := newTowers(t)
	for i, id := range []string{"job:7", "x@y", "{6F9619FF-8B86-D011-B42D-00CF4FC964FF}", "a b/c", strings.Repeat("r", 500)} {
		name := fmt.Sprint("lock", i)
		c.take(name, id)
		c.fails(cli.ExitNotOwner, "holds it", "release", name, "--request-id", "other")
		c.succeeds("heartbeat", name, "--request-id", id)
		require.Equal(t, id, fieldsOf(t, c.run("check", name, "--json").out)["lock"].(map[string]any)["request_id"])
		c.succeeds("release", name, "--request-id", id)
	}
}

func TestTowerWrongArguments(t *testing.T) {
	c := newTowers(t)
	request := []string{"--request-id", "req_1", "--intent", "i", "--intent-version", "1"}
	for problem, args := range map[string][]string{
		"unknown subcommand take":             {"take", "a"},
		"give a subcommand":                   {},
		"usage: lockfs tower acquire NAME":    {"acquire"},
		"--request-id":                        {"acquire", "a", "--intent", "i", "--intent-version", "1"},
		"give --intent:":                      {"acquire", "a", "--request-id", "r", "--intent-version", "1"},
		"give --intent-version:":              {"acquire", "a", "--request-id", "r", "--intent", "i"},
		"unknown flag":                        {"acquire", "a", "--request", "r"},
		"must contain only a-z":               append([]string{"acquire", "Money"}, request...),
		"must not start or end":               append([]string{"acquire", "a-"}, request...),
		"see `lockfs tower --help`":           append([]string{"acquire", "${params.app}"}, request...),
		"write it as KEY=VALUE":               append([]string{"acquire", "a", "--param", "app"}, request...),
		"it is given twice":                   append([]string{"acquire", "a", "--metadata", "k=1", "--metadata", "k=2"}, request...),
		"number of seconds":                   append([]string{"acquire", "a", "--ttl", "1500ms"}, request...),
		"request_id: must not contain":        append([]string{"acquire", "a"}, "--request-id", "a\nb", "--intent", "i", "--intent-version", "1"),
		"request_id: must be valid UTF-8":     append([]string{"acquire", "a"}, "--request-id", "\xff", "--intent", "i", "--intent-version", "1"),
		"actor: must be valid UTF-8":          append([]string{"acquire", "a", "--actor", "\xff"}, request...),
		"metadata \"k=\\xff\": it must be":    append([]string{"acquire", "a", "--metadata", "k=\xff"}, request...),
		"failure-step \"\\xff\": it must":     {"run", "a", "--failure-step", "\xff", "--intent", "i", "--intent-version", "1", "--", "true"},
		"Mutate intent without lock":          append([]string{"acquire", ""}, request...),
		"Reconcile intent without lock":       append([]string{"acquire", "", "--mode", "reconcile"}, request...),
		"--ttl 1s: times in locks":            append([]string{"acquire", "a", "--ttl", "1"}, request...),
		"must not be negative":                append([]string{"acquire", "a", "--wait", "-1s"}, request...),
		"--audit-log: open":                   append([]string{"acquire", "a", "--audit-log", "/nowhere/audit"}, request...),
		"TOWER_LOCK_DIR names it":             append([]string{"acquire", "a", "--dir", "/dev/null/x"}, request...),
		"--dir is empty":                      append([]string{"acquire", "a", "--dir", ""}, request...),
		"put it after --":                     append([]string{"run", "a"}, request...),
		"2 arguments before --":               append([]string{"run", "a", "b", "--", "true"}, request...),
		"give 2s or more":                     {"run", "a", "--ttl", "1", "--intent", "i", "--intent-version", "1", "--", "true"},
		"give at most 5m, a third of the ttl": {"run", "a", "--every", "6m", "--intent", "i", "--intent-version", "1", "--", "true"},
		"--grace -1s":                         {"run", "a", "--grace", "-1s", "--intent", "i", "--intent-version", "1", "--", "true"},
	} {
		c.fails(cli.ExitFailed, problem, args...)
	}
	require.NoDirExists(t, c.dir)
}

func (t *towers) runArgs(name string, more ...string) []string {
	return append([]string{"run", name, "--intent", "deploy-app", "--intent-version", "1.2.0"}, more...)
}

func TestTowerRun(t *testing.T) {
	c := newTowers(t)
	c.env = []string{"LOCKFS_TOKEN=7"}
	o := c.succeeds(c.runArgs("a", "--request-id", "req_1", "--", "sh", "-c", `cat "$DIR/a.lock"; echo "token=$LOCKFS_TOKEN" >&2`)...)
	require.Equal(t, "req_1", fieldsOf(t, o.out)["request_id"])
	require.Contains(t, o.errors, "token=\n", "that of another lock is not handed on")
	require.NoFileExists(t, c.path("a"))
	require.Equal(t, "lock_acquired", c.events()[0]["event"])
	require.Equal(t, "success", c.events()[1]["result"])

	o = c.fails(9, "", c.runArgs("a", "--failure-step", "deploy", "--", "sh", "-c", "exit 9")...)
	require.Empty(t, o.errors)
	event := c.events()[3]
	require.Equal(t, "failure", event["result"])
	require.Equal(t, "deploy", event["failure_step"])
	require.Regexp(t, "^req_[0-9a-f]{16}$", event["request_id"])
	require.NoFileExists(t, c.path("a"))

	c.fails(cli.ExitSignal+9, "", c.runArgs("a", "--", "sh", "-c", "kill -9 $$")...)
	c.fails(cli.ExitNotFound, "not found", c.runArgs("a", "--", "no-such-command")...)
	c.fails(cli.ExitCannotRun, "denied", c.runArgs("a", "--", "/etc/passwd")...)
	require.NoFileExists(t, c.path("a"))
	require.Len(t, c.events(), 6)
}

func TestTowerRunNotAcquired(t *testing.T) {
	c := newTowers(t)
	c.take("a", "req_1")
	ran := filepath.Join(c.dir, "ran")
	for code, more := range map[int][]string{cli.ExitBlocked: nil, cli.ExitTimedOut: {"--wait", "50ms"}} {
		o := c.fails(code, `"error":"lock_blocked"`, c.runArgs("a", append(more, "--", "touch", ran)...)...)
		require.Empty(t, o.out, "that is the command's")
	}
	require.NoFileExists(t, ran)
	c.age("a", time.Hour)
	c.fails(cli.ExitBlocked, `"error":"lock_stale"`, c.runArgs("a", "--", "touch", ran)...)
	c.succeeds(c.runArgs("a", "--force-lock", "--", "touch", ran)...)
	require.FileExists(t, ran)
}

func TestTowerRunRenews(t *testing.T) {
	c := newTowers(t)
	c.succeeds(c.runArgs("a", "--ttl", "2", "--every", "20ms", "--", "sh", "-c",
		`first=$(grep heartbeat "$DIR/a.lock"); until [ "$(grep heartbeat "$DIR/a.lock")" != "$first" ]; do sleep 0.05; done`)...)
}

func TestTowerRunLost(t *testing.T) {
	steal := `sed -i s/req_1/req_2/ "$DIR/a.lock"; `
	for how, script := range map[string]string{
		"removed":               `rm "$DIR/a.lock"; sleep 60`,
		"stolen":                steal + `sleep 60`,
		"it does not end":       `trap "" TERM; ` + steal + `while :; do sleep 0.05; done`,
		"what it started stays": steal + `(trap "" TERM; while :; do sleep 0.05; done) & exec sleep 60`,
		"found at the end":      steal + `exit 0`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newTowers(t)
			started := time.Now()
			o := c.fails(cli.ExitLost, "request req_1 does not have the lock a",
				c.runArgs("a", "--request-id", "req_1", "--grace", "300ms", "--", "sh", "-c", `echo $$ > "$DIR/pid"; `+script)...)
			require.Less(t, time.Since(started), tower.RecommendedInterval(tower.DefaultTTL), "it does not take a heartbeat: %s", o.errors)
			for _, event := range c.events() {
				require.NotEqual(t, "lock_released", event["event"])
			}
			if how != "removed" {
				require.FileExists(t, c.path("a"), "it is not this request's")
			}
			var pid int
			text, err := os.ReadFile(filepath.Join(c.dir, "pid"))
			require.NoError(t, err)
			_, err = fmt.Sscan(string(text), &pid)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return syscall.Kill(-pid, 0) != nil || allDefunct(pid) }, time.Minute, 10*time.Millisecond)
		})
	}
}

// allDefunct tells whether of a process group nothing is left that could do anything.
func allDefunct(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		if len(fields) > 2 && fields[2] == fmt.Sprint(group) && fields[0] != "Z" {
			return false
		}
	}
	return true
}

func TestTowerRunHandsSignalsOn(t *testing.T) {
	c := newTowers(t)
	cmd := c.start(c.runArgs("a", "--", "sh", "-c", `trap "exit 3" TERM; touch "$DIR/ready"; while :; do sleep 0.05; done`)...)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(c.dir, "ready"))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 3, cmd.ProcessState.ExitCode())
	require.NoFileExists(t, c.path("a"))
	require.Equal(t, "failure", c.events()[1]["result"])
}

// If lockfs is killed, the command is told to end, and then the lock is released.
func TestTowerRunKilled(t *testing.T) {
	c := newTowers(t)
	cmd := c.start(c.runArgs("a", "--", "sh", "-c", `trap "touch \"$DIR/told\"; exit" TERM; touch "$DIR/ready"; while :; do sleep 0.05; done`)...)
	require.NoError(t, cmd.Start())
	appears := func(name string) {
		require.Eventually(t, func() bool {
			_, err := os.Stat(filepath.Join(c.dir, name))
			return err == nil
		}, time.Minute, 10*time.Millisecond, name)
	}
	appears("ready")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	appears("told")
	require.Eventually(t, func() bool {
		_, err := os.Stat(c.path("a"))
		return errors.Is(err, os.ErrNotExist)
	}, time.Minute, 10*time.Millisecond)
}

// The result of an execution is told even if its lock cannot be removed (section 8.3).
func TestTowerRunReleaseFailed(t *testing.T) {
	c := newTowers(t)
	o := c.run(c.runArgs("a", "--request-id", "req_1", "--", "sh", "-c", `echo { > "$DIR/a.lock"; exit 4`)...)
	require.Equal(t, 4, o.code, o.errors)
	require.Contains(t, o.errors, "remove it with")
	require.Equal(t, "lock_release_failed", c.events()[1]["event"])
}

// Processes that take one lock at once: each writes alone.
func TestTowerProcessesExcludeEachOther(t *testing.T) {
	const processes = 6
	c := newTowers(t)
	require.NoError(t, os.Mkdir(c.dir, 0o700))
	script := `mkdir "$DIR/critical" || exit 1; sleep 0.02; rmdir "$DIR/critical"; echo >> "$DIR/count"`
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			cmd := c.start(c.runArgs("a", "--wait", "2m", "--", "sh", "-c", script)...)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
	all.Wait()
	count, err := os.ReadFile(filepath.Join(c.dir, "count"))
	require.NoError(t, err)
	require.Len(t, count, processes)
	require.Len(t, c.events(), 2*processes)
}

func TestTowerHelp(t *testing.T) {
	root := towerCommand()
	for _, cmd := range root.Commands() {
		require.NotEmpty(t, cmd.Example, cmd.Name())
		require.NotEmpty(t, cmd.Long, cmd.Name())
		require.NotNil(t, cmd.Flags().Lookup("dir"))
	}
	require.Contains(t, root.Long, "Only a mount\nof lockfs also guarantees")
	for name, codes := range map[string][]int{
		"acquire":   {0, cli.ExitBlocked, cli.ExitTimedOut, cli.ExitFailed},
		"release":   {0, cli.ExitNotOwner, cli.ExitFailed},
		"heartbeat": {0, cli.ExitLost, cli.ExitFailed},
		"check":     {cli.ExitStale, cli.ExitActive, cli.ExitFree, cli.ExitInvalid, cli.ExitFailed},
		"list":      {0, cli.ExitFailed},
		"run":       {cli.ExitBlocked, cli.ExitTimedOut, cli.ExitLost, cli.ExitFailed, cli.ExitCannotRun, cli.ExitNotFound},
	} {
		cmd, _, err := root.Find([]string{name})
		require.NoError(t, err)
		for _, code := range codes {
			require.Regexp(t, fmt.Sprintf(`(?m)^  %d +\S`, code), cmd.Long)
		}
	}
}
