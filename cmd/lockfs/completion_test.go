package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/formats/swarm"
)

// Directives, as a shell gets them.
const (
	offersFiles       = ":0"
	offersNoFiles     = ":4"
	offersDirectories = ":16"
)

func TestCompletion(t *testing.T) {
	locks, state := t.TempDir(), t.TempDir()
	for _, name := range []string{"deploy.lock", "nightly.lock", "Not-a-name.lock", "nightly.lock.heartbeat.tmp"} {
		require.NoError(t, os.WriteFile(filepath.Join(locks, name), nil, 0o600))
	}
	tasks := filepath.Join(state, "locks")
	require.NoError(t, os.Mkdir(tasks, 0o700))
	for name, content := range map[string]string{"task-001.lock": `{"task_id": "task-001", "worker": "worker-0", "acquired_at": "2025-02-02T10:00:00Z", "expires_at": ""}`, "Task 2.lock": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(tasks, name), []byte(content), 0o600))
	}
	program := clitest.ProgramNamed(t, "lockfs")
	environment := []string{protocol.TowerDirVariable + "=" + locks, swarm.StateDirVariable + "=" + state}
	for line, want := range map[string]string{
		"tower check":                     "deploy nightly " + offersNoFiles,
		"tower acquire":                   "deploy nightly " + offersNoFiles,
		"tower release":                   "deploy nightly " + offersNoFiles,
		"tower heartbeat --every 20s":     "deploy nightly " + offersNoFiles,
		"tower run --intent i":            "deploy nightly " + offersNoFiles,
		"tower run deploy":                offersNoFiles,
		"tower run deploy --":             offersFiles,
		"tower check --dir " + tasks:      "task-001 " + offersNoFiles,
		"tower check deploy":              offersNoFiles,
		"tower check --dir":               offersDirectories,
		"tower acquire --mode":            "observe mutate reconcile " + offersNoFiles,
		"tower acquire --intent":          offersNoFiles,
		"tower acquire --audit-log":       offersFiles,
		"tower release a --result":        "success failure " + offersNoFiles,
		"swarm check":                     "Task 2 task-001 " + offersNoFiles,
		"swarm acquire":                   "Task 2 task-001 " + offersNoFiles,
		"swarm acquire task-001":          offersNoFiles,
		"swarm release":                   "Task 2 task-001 " + offersNoFiles,
		"swarm release task-001":          "worker-0 " + offersNoFiles,
		"swarm release none":              offersNoFiles,
		"swarm release task-001 worker-0": offersNoFiles,
		"beads acquire":                   offersDirectories,
		"beads run .beads":                offersNoFiles,
		"beads run .beads --":             offersFiles,
		"semaphore acquire":               offersFiles,
		"semaphore acquire x":             offersNoFiles,
		"run":                             offersFiles,
		"run --format":                    "semaphore tower swarm beads pid " + offersNoFiles,
		"run x -- make":                   offersFiles,
		"wait":                            offersFiles,
		"rm x":                            offersFiles,
		"locks":                           offersFiles,
		"rule set":                        offersNoFiles,
		"rule set x --format":             "tower semaphore swarm beads pid forrst none data " + offersNoFiles,
		"rule set x --holder":             "creator " + offersNoFiles,
		"rule set x --on-stale":           "keep remove " + offersNoFiles,
		"rule set x --guard":              "host anyone " + offersNoFiles,
		"host forget":                     offersNoFiles,
		"mount":                           offersDirectories,
		"server --data":                   offersDirectories,
		"server --log-level":              "debug info warn error " + offersNoFiles,
		"events --since":                  offersNoFiles,
	} {
		args := append(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Fields(line)...), "")
		done := clitest.Execute(t, environment, program, args...)
		require.Equal(t, 0, done.Code, "%s: %s", line, done.Stderr)
		require.Equal(t, want, strings.Join(strings.Split(strings.TrimSpace(done.Stdout), "\n"), " "), line)
	}
	subcommands := clitest.Execute(t, nil, program, cobra.ShellCompNoDescRequestCmd, "semaphore", "").Stdout
	require.Equal(t, "acquire\ncheck\nrelease\nrun\n"+offersNoFiles+"\n", subcommands)
	require.Contains(t, clitest.Execute(t, nil, program, cobra.ShellCompNoDescRequestCmd, "wait", "--").Stdout, "--timeout\n")
}

// TestCompletionScripts: bash can read its script, and those of the others are for them.
func TestCompletionScripts(t *testing.T) {
	program := clitest.ProgramNamed(t, "lockfs")
	for shell, begin := range map[string]string{"bash": "# bash completion", "zsh": "#compdef lockfs\n", "fish": "# fish completion"} {
		script := clitest.Execute(t, nil, program, "completion", shell)
		require.Equal(t, 0, script.Code, script.Stderr)
		require.Truef(t, strings.HasPrefix(script.Stdout, begin), "%.40q", script.Stdout)
		if shell == "bash" {
			check := exec.Command("bash", "-n")
			check.Stdin = strings.NewReader(script.Stdout)
			output, err := check.CombinedOutput()
			require.NoError(t, err, "%s", output)
		}
	}
}

// TestCompletionTables: a command that is renamed would lose its completion without a word.
func TestCompletionTables(t *testing.T) {
	root := rootCommand()
	for path := range argumentCompletions {
		found, rest, err := root.Find(strings.Fields(path)[1:])
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, path, found.CommandPath())
	}
	flags := make(map[string]bool)
	var collect func(*cobra.Command)
	collect = func(cmd *cobra.Command) {
		for key := range flagCompletions {
			name, flag, _ := strings.Cut(key, "--")
			if (name == "" || name == cmd.Name()+" ") && cmd.Flags().Lookup(flag) != nil {
				flags[key] = true
			}
		}
		for _, child := range cmd.Commands() {
			collect(child)
		}
	}
	collect(root)
	require.Len(t, flags, len(flagCompletions), "%v", flags)
}
