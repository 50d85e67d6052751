package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/formats/forrst"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// TestWrongCalls: a command that cannot be understood, or cannot reach a cluster, has exit code 1 and says what to do.
func TestWrongCalls(t *testing.T) {
	program, nobody := clitest.ProgramNamed(t, "lockfs"), []string{"LOCKFS_SERVERS=127.0.0.1:1", "LOCKFS_INSECURE=true"}
	for call, problem := range map[string]string{
		"lock":                                   "unknown command \"lock\" for \"lockfs\" (did you mean `lockfs run`?); see `lockfs --help`",
		"sttaus":                                 "did you mean `lockfs status`?",
		"status --sevrers a":                     "unknown flag: --sevrers (did you mean --servers?); see `lockfs status --help`",
		"status --nothinglike":                   "unknown flag: --nothinglike; see `lockfs status --help`",
		"--other":                                "see `lockfs --help`",
		"host":                                   "lockfs: give a subcommand",
		"host lst":                               "unknown subcommand lst (did you mean `lockfs host list`?); see `lockfs host --help`",
		"host list a":                            "usage: lockfs host list",
		"host forget":                            "usage: lockfs host forget NAME",
		"host list --timeout 10":                 `missing unit in duration "10"; write it like 90s, 10m or 24h; see`,
		"host list --timeout 50ms":               "check that `lockfs server` runs on [127.0.0.1:1]",
		"host forget a --timeout 1ms":            "forget host a: ",
		"member":                                 "lockfs: give a subcommand",
		"member remove":                          "usage: lockfs member remove NAME",
		"member list --timeout 50ms":             "or give other servers with --servers",
		"session":                                "lockfs: give a subcommand",
		"session list a":                         "usage: lockfs session list",
		"session list --timeout 50ms":            "or give other servers with --servers",
		"status a":                               "usage: lockfs status",
		"status --timeout 50ms":                  "or give other servers with --servers",
		"status --servers :":                     "or give other servers with --servers",
		"locks a b":                              "usage: lockfs locks [PATH]",
		"locks --timeout 50ms":                   "or give other servers with --servers",
		"events a":                               "usage: lockfs events",
		"events --since yesterday":               "a time such as 2026-01-02T15:04:05Z, or a duration such as 10m",
		"events --timeout 50ms":                  "or give other servers with --servers",
		"events --other":                         "see `lockfs events --help`",
		"rule":                                   "lockfs: give a subcommand",
		"rule set":                               "usage: lockfs rule set PATTERN",
		"rule set x":                             "the rule has no setting: give --holder",
		"rule set x --format other":              "is none of [tower semaphore",
		"rule set x --holder me":                 "is not creator",
		"rule set x --format data --guard host":  "can have no other setting",
		"rule set x --guard other":               "neither host nor anyone",
		"rule set x --on-stale other":            "neither keep nor remove",
		"rule set x --stale-after 10":            "write it like 90s, 10m or 24h",
		"quota set /x --inodes -5":               "write it as a whole number, like 1000",
		"rule set x --guard host --timeout 50ms": "set rule x: ",
		"rule delete":                            "usage: lockfs rule delete PATTERN",
		"rule delete x --timeout 1ms":            "or give other servers with --servers",
		"rule list --timeout 50ms":               "or give other servers with --servers",
		"rm":                                     "usage: lockfs rm [--force] PATH...",
		"rm exits_test.go":                       "it is not on a lockfs mount, but on the file system at",
		"mount":                                  "usage: lockfs mount",
		"mount a b":                              "usage: lockfs mount",
		"dev a b":                                "usage: lockfs dev [DIR]",
		"server a":                               "usage: lockfs server",
		"dev --forrst-upstream http://u":         "--forrst-upstream needs --forrst-addr",
		"dev --forrst-replay -1s":                "--forrst-replay -1s is negative: give 0 or more",
		"dev --forrst-addr :1 --forrst-upstream u": "give one like http://127.0.0.1:9000/rpc",
		"server init a":                            "usage: lockfs server init",
		"server init --addr 0.0.0.0:1":             "no data directory is given",
		"server --log-level loud":                  "give debug, info, warn or error",
		"server --join a --insecure=false":         "no data directory is given",
		"server --token x":                         "a token needs certificates",
		"status --insecure=false --identity /none": "--identity: /none: this host belongs to no cluster yet",
		"status --identity /none":                  "give one of them",
		"token":                                    "lockfs: give a subcommand",
		"token create":                             "it is server or client",
		"token create --role client --uses 0":      "--uses must be at least 1",
		"token create --role client --host -":      "is no name of a host",
		"token create --role server --squash-root": "--squash-root is for clients",
		"token revoke":                             "usage: lockfs token revoke ID",
		"token revoke x":                           "is no id of a token",
		"host revoke":                              "usage: lockfs host revoke NAME",
		"host revoke a --timeout 50ms":             "revoke host a: ",
		"ca":                                       "lockfs: give a subcommand",
		"ca list --timeout 50ms":                   "or give other servers with --servers",
		"up a b":                                   "usage: lockfs up",
		"down a":                                   "usage: lockfs down",
		"leave a":                                  "usage: lockfs leave",
		"version a":                                "usage: lockfs version",
		"forrst":                                   "lockfs: give a subcommand",
		"forrst status":                            "usage: lockfs forrst status KEY",
		"bench /nowhere":                           "/nowhere: no such file or directory",
	} {
		done := clitest.Execute(t, nobody, program, strings.Fields(call)...)
		code := 1
		if strings.HasPrefix(call, "forrst") {
			code = cli.ExitFailed
		}
		require.Equal(t, code, done.Code, call)
		require.Contains(t, done.Stderr, problem, call)
		require.Empty(t, done.Stdout, call)
	}
	require.Contains(t, rootCommand().Long, "The exit code is 0, or 1 after an error")
}

// TestExamples: every command that does something shows how.
func TestExamples(t *testing.T) {
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() && !cmd.Hidden && cmd.Name() != "version" && cmd.Parent().Name() != "completion" {
			require.Contains(t, cmd.Example, "lockfs ", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			each(child)
		}
	}
	each(rootCommand())
}

func TestForrstExitCodes(t *testing.T) {
	program := clitest.ProgramNamed(t, "lockfs")
	protocol := forrst.Protocol{Name: forrst.ProtocolName, Version: forrst.ProtocolVersion}
	refused := func(code forrst.Code) string {
		text, err := json.Marshal(&forrst.Response{Protocol: protocol, Errors: []*forrst.Error{{Code: code, Message: "no"}}})
		require.NoError(t, err)
		return string(text)
	}
	answered := func(result string) string {
		text, err := json.Marshal(&forrst.Response{Protocol: protocol, Result: json.RawMessage(result)})
		require.NoError(t, err)
		return string(text)
	}
	for _, c := range []struct {
		call, answer string
		code         int
		says         string
	}{
		{"release k --owner o", answered(`{"released":true,"key":"k"}`), 0, "Released k\n"},
		{"release k --owner o --json", answered(`{"released":true,"key":"k"}`), 0, `"released": true`},
		{"release k --owner o", refused(forrst.NotFound), cli.ExitNoLock, "LOCK_NOT_FOUND: no; KEY is the full one"},
		{"release k --owner o", refused(forrst.AlreadyReleased), cli.ExitNoLock, "nothing is left to do"},
		{"release k --owner o", refused(forrst.OwnershipMismatch), cli.ExitNotOwner, "`lockfs forrst status` shows the owner"},
		{"release k --owner o", refused(forrst.Unavailable), cli.ExitFailed, "or another server with --endpoint"},
		{"release k --owner o", refused(forrst.InvalidRequest), cli.ExitFailed, "INVALID_REQUEST: no\n"},
		{"release k --owner o", "x", cli.ExitFailed, "is no Forrst endpoint: it answered 200 OK"},
		{"release k --owner o", `{"result":{"released":true}}`, cli.ExitFailed, "is no Forrst endpoint: it answered 200 OK"},
		{"release k", "", cli.ExitFailed, "--owner: give the token"},
		{"force-release k", answered(`{"released":true,"key":"k","forced":true}`), 0, "Released k by force\n"},
		{"force-release k --json", answered(`{"released":true,"key":"k","forced":true}`), 0, `"forced": true`},
		{"force-release k", refused(forrst.NotFound), cli.ExitNoLock, ""},
		{"status k", answered(`{"key":"k","locked":false,"hint":"look elsewhere"}`), cli.ExitNoLock, "k is not locked; look elsewhere\n"},
		{"status k --json", answered(`{"key":"k","locked":false,"hint":"look elsewhere"}`), cli.ExitNoLock, `"hint": "look elsewhere"`},
		{"status lock:k", answered(`{"key":"lock:k","locked":false}`), cli.ExitNoLock, "lock:k is not locked\n"},
		{"status k --json", answered(`{"key":"k","locked":false}`), cli.ExitNoLock, `"locked": false`},
		{"status k", answered(`{"key":"k","locked":true,"owner":"o"}`), 0, "k is locked by o since"},
		{"status k --endpoint http://127.0.0.1:1/forrst", "", cli.ExitFailed, "is there a server with --forrst-addr?"},
		{"status k --endpoint 127.0.0.1:1", "", cli.ExitFailed, "give one like http://127.0.0.1:7423/forrst"},
		{"status k --timeout 1", "", cli.ExitFailed, "write it like 90s, 10m or 24h"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.answer) }))
		done := clitest.Execute(t, []string{"LOCKFS_ENDPOINT=" + server.URL}, program, append([]string{"forrst"}, strings.Fields(c.call)...)...)
		server.Close()
		require.Equal(t, c.code, done.Code, "%s: %s", c.call, done.Stderr)
		require.Contains(t, done.Stdout+done.Stderr, c.says, c.call)
	}
}

// TestWhatIsInTheWay: whatever is found in place of a lock or of its directory, each command says what to do.
func TestWhatIsInTheWay(t *testing.T) {
	program, dir := clitest.ProgramNamed(t, "lockfs"), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "locks", "directory.lock"), 0o700))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "locks", "link.lock")))
	large := strings.Repeat("x", 300<<10)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "locks", "large.lock"), []byte(large), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "beads", ".exclusive-lock"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "large"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large", ".exclusive-lock"), []byte(large), 0o600))
	const (
		tooLarge = "too large: it has 307200 bytes, and a lock has at most 262144"
		notFile  = "this format keeps each lock in a file: give another name, or remove the one in the way"
		noDir    = "not a directory; give another path"
		request  = " --request-id r --intent i --intent-version 1"
	)
	for call, want := range map[string]struct {
		code int
		says string
	}{
		"tower acquire directory" + request:                        {cli.ExitBlocked, "look at it, and remove it if nobody uses it"},
		"tower acquire large" + request:                            {cli.ExitBlocked, "file: " + tooLarge},
		"wait DIR/locks/large.lock --timeout 0s":                   {cli.ExitTimedOut, "DIR/locks/large.lock is held after 0s; " + tooLarge},
		"run --format pid DIR/locks/large.lock --nonblock -- true": {cli.ExitBlocked, "DIR/locks/large.lock is not a valid lock: " + tooLarge},
		"semaphore release DIR/locks/large.lock":                   {cli.ExitNotOwner, "DIR/locks/large.lock is not a valid lock: " + tooLarge},
		"swarm acquire large other":                                {1, tooLarge + "; look at DIR/locks/large.lock"},
		"beads acquire DIR/large --holder me":                      {cli.ExitFailed, tooLarge + "; look at DIR/large/.exclusive-lock"},
		"tower release link --request-id r":                        {cli.ExitFailed, "look at it, and if it is not in use remove it with `rm DIR/locks/link.lock`"},
		"tower heartbeat link --request-id r":                      {cli.ExitFailed, "look at it, and remove it if nobody uses it"},
		"tower list --dir DIR/locks/large.lock":                    {cli.ExitFailed, noDir},
		"tower list --dir DIR/none":                                {cli.ExitFailed, "the first lock makes the directory, or give another"},
		"semaphore acquire DIR/locks":                              {cli.ExitFailed, notFile},
		"semaphore acquire DIR/locks/link.lock":                    {cli.ExitFailed, notFile},
		"semaphore acquire DIR/locks/large.lock":                   {cli.ExitBlocked, "is not a valid lock: " + tooLarge},
		"semaphore acquire DIR/locks/large.lock/x":                 {cli.ExitFailed, noDir},
		"semaphore acquire DIR/none/x":                             {cli.ExitFailed, "make the directory DIR/none first"},
		"semaphore release DIR/locks":                              {cli.ExitFailed, notFile},
		"semaphore check DIR/locks":                                {cli.ExitFailed, notFile},
		"semaphore run DIR/none/x -- true":                         {cli.ExitFailed, "make the directory DIR/none first"},
		"run DIR/locks -- true":                                    {cli.ExitFailed, notFile},
		"run --format pid DIR/locks -- true":                       {cli.ExitFailed, notFile},
		"run --format pid DIR/none/x -- true":                      {cli.ExitFailed, "make the directory DIR/none first"},
		"run --format swarm DIR/locks/link.lock -- true":           {cli.ExitFailed, notFile},
		"run --format beads DIR/beads -- true":                     {cli.ExitFailed, notFile},
		"wait DIR/none/x":                                          {cli.ExitFailed, "the directory of the lock is missing: create it, or mount its file system"},
		"wait DIR/locks/large.lock/x --timeout 0s":                 {cli.ExitFailed, noDir},
		"wait DIR/locks --timeout 0s":                              {cli.ExitTimedOut, "DIR/locks is held after 0s"},
		"swarm acquire directory w":                                {1, notFile},
		"swarm acquire large w":                                    {1, "look at DIR/locks/large.lock, and remove it if it is not in use"},
		"swarm release large w":                                    {1, "look at DIR/locks/large.lock, and remove it if it is not in use"},
		"swarm check link":                                         {1, notFile},
		"swarm acquire t w -5":                                     {1, "ttl_seconds: -5 is not a number from 1"},
		"beads acquire DIR/beads --holder me":                      {cli.ExitFailed, notFile},
		"beads check DIR/beads":                                    {cli.ExitFailed, notFile},
		"beads check DIR/locks/large.lock":                         {cli.ExitFailed, "is no directory; give that of a beads database"},
	} {
		words := strings.Fields(strings.ReplaceAll(call, "DIR", dir))
		done := clitest.Execute(t, []string{swarm.StateDirVariable + "=" + dir, protocol.TowerDirVariable + "=" + dir + "/locks"}, program, words...)
		require.Equal(t, want.code, done.Code, "%s: %s", call, done.Stderr)
		require.Contains(t, done.Stderr, strings.ReplaceAll(want.says, "DIR", dir), call)
	}
	for _, call := range [][]string{{"wait", ""}, {"run", "", "--", "true"}, {"semaphore", "check", ""}} {
		done := clitest.Execute(t, nil, program, call...)
		require.Equal(t, cli.ExitFailed, done.Code)
		require.Contains(t, done.Stderr, "PATH is empty")
	}
	require.Contains(t, clitest.Execute(t, nil, program, "beads", "check", "").Stderr, "DIR is empty")
}

// TestNotAllowed calls the commands as a user who may not even look.
func TestNotAllowed(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "lockfs-test-") // everybody can get there
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	program := copyOfProgram(t, dir)
	locks := filepath.Join(dir, "locks")
	require.NoError(t, os.Mkdir(locks, 0))
	require.NoError(t, os.Chmod(dir, 0o555))
	defer func() {
		require.NoError(t, os.Chmod(dir, 0o700))
		require.NoError(t, os.Chmod(locks, 0o700))
	}()
	user, as := os.Geteuid(), []string{}
	if user == 0 { // who may everything
		user, as = 65534, []string{"setpriv", "--reuid", "65534", "--clear-groups"}
	}
	for call, code := range map[string]int{
		"tower list": cli.ExitFailed, "tower check a": cli.ExitFailed,
		"tower acquire a --request-id r --intent i --intent-version 1": cli.ExitFailed,
		"swarm acquire t w": 1, "swarm release t w": 1, "swarm check t": 1, "swarm list": 1,
		"semaphore acquire DIR/locks/x": cli.ExitFailed, "semaphore release DIR/locks/x": cli.ExitFailed,
		"semaphore acquire DIR/x": cli.ExitFailed, "semaphore check DIR/locks/x": cli.ExitFailed,
		"run DIR/locks/x -- true": cli.ExitFailed, "wait DIR/locks/x --timeout 0s": cli.ExitFailed,
		"beads acquire DIR/locks --holder me": cli.ExitFailed, "beads check DIR/locks": cli.ExitFailed,
	} {
		words := strings.Fields(strings.ReplaceAll(call, "DIR", dir))
		environment := []string{swarm.StateDirVariable + "=" + dir, protocol.TowerDirVariable + "=" + dir + "/locks"}
		command := slices.Concat(as, []string{program}, words)
		done := clitest.Execute(t, environment, command[0], command[1:]...)
		require.Equal(t, code, done.Code, "%s: %s", call, done.Stderr)
		require.Contains(t, done.Stderr, fmt.Sprintf("permission denied; user %d needs access", user), call)
	}
	require.NotContains(t, clitest.Execute(t, nil, program, "run", filepath.Join(dir, "x"), "--", "/etc/passwd").Stderr, "needs access")
}

func copyOfProgram(t testing.TB, dir string) string {
	t.Helper()
	content, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	path := filepath.Join(dir, "lockfs")
	require.NoError(t, os.WriteFile(path, content, 0o755))
	return path
}

// TestLostUnderEachRun: what runs a command under a lock answers 124 when it is gone, and 128+N for one that a signal
// ended.
func TestLostUnderEachRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := clitest.ProgramNamed(t, "lockfs")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "locks"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "beads"), 0o700))
	for call, lock := range map[string]string{
		"semaphore run DIR/x":                       "x",
		"beads run DIR/beads --holder w":            "beads/.exclusive-lock",
		"tower run x --intent i --intent-version 1": "locks/" + tower.FileName("x"),
		"run --format swarm DIR/locks/y.lock":       "locks/" + swarm.FileName("y"),
	} {
		words := strings.Fields(strings.ReplaceAll(call, "DIR", dir))
		run := func(script string) clitest.Outcome {
			return clitest.Execute(t, []string{protocol.TowerDirVariable + "=" + dir + "/locks", "LOCK=" + filepath.Join(dir, lock)}, program,
				append(words, "--", "bash", "-c", script)...)
		}
		lost := run(`rm "$LOCK"`)
		require.Equal(t, cli.ExitLost, lost.Code, "%s: %s", call, lost.Stderr)
		require.Contains(t, lost.Stderr, "the lock was lost while the command ran", call)
		require.Contains(t, lost.Stderr, "check this before you go on", call)
		require.Equal(t, cli.ExitSignal+9, run("kill -9 $$").Code, call)
		require.NoFileExists(t, filepath.Join(dir, lock))
	}
}
