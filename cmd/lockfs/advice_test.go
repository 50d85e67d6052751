package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/formats/swarm"
)

// aCommand is one of lockfs, in an error that begins with "lockfs: ".
var aCommand = regexp.MustCompile(`\blockfs (--)?[a-z]`)

// TestErrorsNameACommand of lockfs that helps, where what people do most goes wrong. What is wrong with a path of the system alone, such as
// a directory that is not there, needs another's. TestErrorsWithoutMajority does so where no majority answers.
func TestErrorsNameACommand(t *testing.T) {
	server := startServer(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "full"), 0o700))
	for _, file := range []string{"file", "full/x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600))
	}
	alone := []string{cli.SocketDirVariable + "=" + dir, swarm.StateDirVariable + "=" + dir, protocol.TowerDirVariable + "=" + dir}
	for _, wrong := range []struct {
		what        string
		environment []string
		calls       []string
	}{
		{"no daemon runs", alone, []string{
			"status", "locks", "events", "events --follow", "why x", "member list", "member remove a", "host list", "host forget x",
			"session list", "rule list",
			"rule set x --guard host", "quota list", "alarm list", "alarm clear 1", "token create --role client", "token list",
			"token revoke 0123456789abcdef",
			"ca list", "backup DIR/backup", "ui", "status --socket /nowhere", "status --socket DIR/file", "status --servers 127.0.0.1:1",
			"status --servers 127.0.0.1:1 --insecure --timeout 1s",
		}},
		{"it is the wrong directory or file", server.environment, []string{
			"rm DIR/file", "rm --force DIR/file", "rm DIR/nosuch", "why DIR/file", "locks DIR/file", "locks nosuch",
			"backup verify DIR/file",
			"backup verify DIR/nosuch", "restore DIR/file", "server inspect --data DIR/full", "server inspect --data DIR/nosuch",
			"server recover --data DIR/full",
			"server --name a --data DIR/full --insecure --addr 127.0.0.1:1", "server --name a --data DIR/none --addr 127.0.0.1:1",
			"server init --name a --data DIR/full --insecure", "quota set /nosuch --bytes 1",
			"quota set nosuch --bytes 1",
		}},
		{"there is no such lock", alone, []string{
			"tower heartbeat nosuch --request-id r", "semaphore release DIR/nosuch", "swarm release nosuch w", "beads release DIR/full",
		}},
		{"there is none of that name or number", server.environment, []string{
			"member remove nosuch", "member promote nosuch", "member demote nosuch", "member replace nosuch a", "member replace a nosuch",
			"host forget nosuch",
			"host revoke nosuch", "token revoke nosuch", "rule delete nosuch", "quota remove /nosuch", "quota remove --uid 7",
			"quota set --uid x --bytes 1",
			"alarm clear 9", "alarm clear x",
		}},
		{"there is no such command, flag or word", server.environment, []string{
			"nosuch", "statsu", "member nosuch", "status --nosuch", "help nosuch", "up nosuch", "bench", "top",
		}},
	} {
		for _, call := range wrong.calls {
			words := strings.Fields(strings.NewReplacer("DIR", dir, "DATA", server.data).Replace(call))
			done := clitest.Execute(t, wrong.environment, server.program, words...)
			require.NotZero(t, done.Code, call)
			require.Regexp(t, aCommand, done.Stderr, "%s: lockfs %s", wrong.what, call)
		}
	}
}
