package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli/clitest"
)

// helps is how an error goes on that says what to do: a command, a flag, or in words behind what is wrong; or it says what there is to
// choose from.
var helps = regexp.MustCompile("`[^`]+`|--[a-z]+|usage: lockfs " +
	`|[:;,] (or )?(give|name|make|put|stop|take|look|see|use|write|wait|copy|start|remove|try)\b|: it is |: it must be |is neither | is none of |it has those from `)

// TestErrorsNameWhatHelps does what goes wrong when one asks a server, or starts a daemon.
func TestErrorsNameWhatHelps(t *testing.T) {
	server := startServer(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "full"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "full", "x"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	alone := " --insecure --bootstrap --addr " + freeAddress(t)
	for _, call := range []string{
		"member remove nosuch", "member promote nosuch", "member demote a", "member replace a nosuch", "member lsit", "member",
		"host forget nosuch", "alarm clear 9", "alarm clear x", "quota set /", "quota set --uid x --bytes 1", "quota remvoe /x",
		"rule delete nosuch", "rule set x --format y", "rule set x --on-stale y", "rule set x --stale-after y", "token create", "token create --role x",
		"token revoke x", "locks nosuch", "backup /nowhere/x", "backup verify DIR/file", "backup verify /nowhere",
		"restore DIR/file --data DIR/new --name a", "restore DIR/file --data DIR/new", "server inspect --data DATA 999999", "server inspect --data DIR/full",
		"server --name a --data DATA" + alone, "server --name a --data DIR/full" + alone, "server --name a/b --data DIR/new" + alone,
		"server --name a --data DIR/new --insecure --bootstrap --addr API", "server --name b --data DIR/new --insecure --addr API",
		"server recover --data DIR/full", "server recover --data DATA", "mount --servers 127.0.0.1:1 --wait 1s DIR/mount", "mount DIR/file/x", "mount",
		"dev DIR/file", "recover", "forrst status k --endpoint http://127.0.0.1:1/forrst", "debug bundle /nowhere/x", "ui --listen 0.0.0.0:1 --socket /nowhere",
		"top", "doctor --nosuch", "docs", "docs man", "docs man DIR/file/x", "help nosuch", "help recipes nosuch", "nosuch", "statsu", "status --jsno",
		"bench", "bench DIR --duration 0s", "run", "run x", "wait", "rm", "rm DIR/file", "status --servers 127.0.0.1:1 --timeout 1s", "events --since x",
	} {
		words := strings.Fields(strings.NewReplacer("DIR", dir, "DATA", server.data, "API", server.api).Replace(call))
		done := clitest.Execute(t, server.environment, server.program, words...)
		require.NotZero(t, done.Code, call)
		require.Regexp(t, helps, done.Stderr, call)
	}
	for call, meant := range map[string]string{
		"statsu": "`lockfs status`", "member lsit": "`lockfs member list`", "status --jsno": "--json", "docs untis": "`lockfs docs units`",
	} {
		require.Contains(t, clitest.Execute(t, server.environment, server.program, strings.Fields(call)...).Stderr, "did you mean "+meant, call)
	}
}

// TestNothingHasColours: there is nothing that NO_COLOR would have to take away, on a terminal either.
func TestNothingHasColours(t *testing.T) {
	server := startServer(t)
	server.lock(t, "a.lock", "somebody")
	for _, call := range []string{"", "status", "locks", "events", "member list", "session list", "doctor", "why", "nosuch", "help locks", "backup verify /nowhere"} {
		shown := clitest.Execute(t, append(server.environment, "TERM=xterm-256color"), "script", "-qec", server.program+" "+call, "/dev/null")
		require.NotEmpty(t, shown.Stdout, call)
		require.NotContains(t, shown.Stdout, "\x1b[", call)
	}
}
