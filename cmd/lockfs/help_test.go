package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/test/loopback"
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
	alone := " --insecure --addr " + loopback.Free(t)
	for _, call := range []string{
		"member remove nosuch", "member promote nosuch", "member demote a", "member replace a nosuch", "member lsit", "member",
		"host forget nosuch", "alarm clear 9", "alarm clear x", "quota set /", "quota set --uid x --bytes 1", "quota remvoe /x",
		"rule delete nosuch", "rule set x --format y", "rule set x --on-stale y", "rule set x --stale-after y", "token create", "token create --role x",
		"token revoke x", "locks nosuch", "backup /nowhere/x", "backup verify DIR/file", "backup verify /nowhere",
		"restore DIR/file --data DIR/new --name a", "restore DIR/file --data DIR/new", "server inspect --data DATA 999999", "server inspect --data DIR/full",
		"server --name a --data DATA" + alone, "server --name a --data DIR/full" + alone, "server --name a/b --data DIR/new" + alone,
		"server --name a --data DIR/new --insecure --join API --addr API", "server --name b --data DIR/new --insecure --addr API",
		"server init --name a --data DIR/full", "server init --name a --data DATA --insecure", "server init --name a/b --data DIR/new",
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

// TestOnlyTroubleHasColours on a terminal, and nothing with NO_COLOR.
func TestOnlyTroubleHasColours(t *testing.T) {
	server := startServer(t)
	server.lock(t, "a.lock", "somebody")
	for _, call := range []string{"", "status", "locks", "events", "member list", "session list", "doctor", "why", "nosuch", "help locks", "backup verify /nowhere"} {
		shown := clitest.Execute(t, append(server.environment, "TERM=xterm-256color"), "script", "-qec", server.program+" "+call, "/dev/null")
		require.NotEmpty(t, shown.Stdout, call)
		require.NotContains(t, shown.Stdout, "\x1b[", call)
	}
	server.lock(t, "stale.lock", `x","expires_at":"2026-01-02T03:04:06Z`)
	locks := clitest.Execute(t, append(server.environment, "TERM=xterm-256color"), "script", "-qec", server.program+" locks", "/dev/null")
	require.Contains(t, locks.Stdout, "\x1b[33mstale\x1b[0m")
	locks = clitest.Execute(t, append(server.environment, "NO_COLOR=1"), "script", "-qec", server.program+" locks", "/dev/null")
	require.NotContains(t, locks.Stdout, "\x1b[", locks.Stdout)
	top := clitest.Execute(t, server.environment, server.program, "top")
	require.Equal(t, clitest.Outcome{Stderr: "lockfs: lockfs top needs a terminal; without one use `lockfs locks --watch`\n", Code: 1}, top)
	for _, more := range []string{"NO_COLOR=1", "COLORTERM=truecolor"} {
		shown := topUntil(t, server, more, "a.lock")
		require.NotRegexp(t, `\x1b\[[0-9;]*[1-9][0-9;]*m`, shown, "it moves about, and colours nothing: %s", more)
	}
}

// TestHelpFitsAScreen checks that help has 80 columns and 40 lines, except the help of lockfs run. The flags of the
// connection stand below the others. The full help has all flags.
func TestHelpFitsAScreen(t *testing.T) {
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		var help strings.Builder
		cmd.SetOut(&help)
		require.NoError(t, cmd.Help())
		for line := range strings.SplitSeq(help.String(), "\n") {
			require.LessOrEqual(t, len(line), 80, "%s: %s", cmd.CommandPath(), line)
		}
		if cmd.CommandPath() != "lockfs run" {
			require.LessOrEqual(t, strings.Count(help.String(), "\n"), 40, "%s", help.String())
		}
		if cmd.Flags().Lookup("servers") != nil && cmd.Flags().Lookup("timeout") != nil && cmd.Flags().Lookup("socket") != nil {
			_, global, _ := strings.Cut(help.String(), "Global flags:\n")
			require.Contains(t, global, "--servers", cmd.CommandPath())
			require.NotContains(t, global, "--json", cmd.CommandPath())
		}
		help.Reset()
		require.NoError(t, cli.FullHelp(cmd))
		if cmd.HasParent() {
			cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
				require.True(t, flag.Hidden || flag.Name == "help" || strings.Contains(help.String(), "--"+flag.Name), "%s --%s", cmd.CommandPath(), flag.Name)
			})
		}
		for _, sub := range cmd.Commands() {
			if !slices.Contains([]string{"completion", "help"}, sub.Name()) {
				each(sub)
			}
		}
	}
	each(rootCommand())
}

// topUntil has lockfs top on a terminal until that has shown a text, and answers all that it has shown.
func topUntil(t *testing.T, server *runningServer, more, text string) string {
	t.Helper()
	cmd := exec.Command("script", "-qefc", "stty rows 24 cols 120; exec "+server.program+" top", "/dev/null")
	cmd.Env = clitest.Environment(append(server.environment, "TERM=xterm-256color", more)...)
	keys, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer time.AfterFunc(operatorWait, func() { _ = cmd.Process.Kill() }).Stop()
	var shown strings.Builder
	for part := make([]byte, 4096); err == nil; {
		var n int
		n, err = out.Read(part)
		before := strings.Contains(shown.String(), text)
		shown.Write(part[:n])
		if !before && strings.Contains(shown.String(), text) {
			_, failed := keys.Write([]byte("q"))
			require.NoError(t, failed)
		}
	}
	require.NoError(t, cmd.Wait(), shown.String())
	require.Contains(t, shown.String(), text)
	return shown.String()
}

// TestWhereOneStandsInTenLines whatever there is to say.
func TestWhereOneStandsInTenLines(t *testing.T) {
	server, other := startServer(t), startServer(t)
	server.lock(t, "a.lock", "somebody")
	several := t.TempDir()
	for _, s := range []*runningServer{server, other} {
		sockets, err := filepath.Glob(filepath.Join(s.sockets, "server-*.sock"))
		require.NoError(t, err)
		require.Len(t, sockets, 1)
		require.NoError(t, os.Link(sockets[0], filepath.Join(several, fmt.Sprintf("server-%d.sock", s.pid))))
	}
	for dir, says := range map[string]string{
		t.TempDir(): "no lockfs daemon runs on this host", server.sockets: "1 of 1 voters answer", several: "daemons of several clusters run on this host",
	} {
		stands := clitest.Execute(t, []string{cli.SocketDirVariable + "=" + dir}, server.program)
		require.Zero(t, stands.Code, stands.Stderr)
		require.Contains(t, stands.Stdout, says)
		require.LessOrEqual(t, strings.Count(stands.Stdout, "\n"), 10, stands.Stdout)
		require.Empty(t, stands.Stderr)
	}
}
