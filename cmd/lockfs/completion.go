package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// complete sets the shell completion of all arguments and flags from the tables below. Without an entry it
// completes nothing: shells by themselves would offer files.
func complete(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = argumentCompletions[cmd.CommandPath()]
			if cmd.ValidArgsFunction == nil {
				cmd.ValidArgsFunction = cobra.NoFileCompletions
			}
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { completeFlag(cmd, flag) })
		complete(cmd)
	}
}

func completeFlag(cmd *cobra.Command, flag *pflag.Flag) {
	with := flagCompletions[cmd.Name()+" --"+flag.Name]
	if with == nil {
		with = flagCompletions["--"+flag.Name]
	}
	if with == nil {
		with = cobra.NoFileCompletions
	}
	_ = cmd.RegisterFlagCompletionFunc(flag.Name, with) // it fails for missing flags, and for those already done
}

// argumentCompletions maps the paths of commands. A command follows --, which shells complete as a file.
var argumentCompletions = map[string]cobra.CompletionFunc{
	"lockfs tower acquire":   first(towerNames),
	"lockfs tower release":   first(towerNames),
	"lockfs tower heartbeat": first(towerNames),
	"lockfs tower check":     first(towerNames),
	"lockfs tower run":       first(towerNames),

	"lockfs swarm acquire": first(swarmTasks),
	"lockfs swarm release": swarmTaskAndWorker,
	"lockfs swarm check":   first(swarmTasks),

	"lockfs beads acquire": first(directories),
	"lockfs beads release": first(directories),
	"lockfs beads check":   first(directories),
	"lockfs beads run":     first(directories),

	"lockfs semaphore acquire": first(files),
	"lockfs semaphore release": first(files),
	"lockfs semaphore check":   first(files),
	"lockfs semaphore run":     first(files),
	"lockfs run":               first(files),
	"lockfs wait":              first(files),
	"lockfs locks":             first(files),
	"lockfs why":               first(files),
	"lockfs rm":                files,

	"lockfs up":            first(files), // as @FILE
	"lockfs backup":        first(files),
	"lockfs backup verify": first(files),
	"lockfs restore":       first(files),

	"lockfs audit verify": files,

	"lockfs mount": first(directories),
	"lockfs dev":   first(directories),
	"lockfs bench": directories,

	"lockfs docs man":   first(directories),
	"lockfs docs units": first(directories),
}

// flagCompletions maps flags, of one command or of all.
var flagCompletions = map[string]cobra.CompletionFunc{
	"run --format": words("semaphore", "tower", "swarm", "beads", "pid"),
	"set --format": words("tower", "semaphore", "swarm", "beads", "pid", "forrst", "none", "data"),
	"set --holder": words("creator"),
	"--role":       words("server", "client"),
	"--state":      words(admin.LockStates...),
	"--on-stale":   words("keep", "remove"),
	"--leases":     words("on", "off"),
	"--guard":      words("host", "anyone"),
	"--mode":       words(string(tower.Observe), string(tower.Mutate), string(tower.Reconcile)),
	"--result":     words("success", "failure"),
	"--log-format": words("text", "json"),
	"--log-level":  words("debug", "info", "warn", "error"),
	"--dir":        directories,
	"--data":       directories,
	"--mount":      directories,
	"--identity":   directories,
	"--socket":     sockets,
	"--audit-log":  files,
	"--backup-dir": directories,
	"--program":    files,
	"--compare":    files,
	"--html":       files,
}

func words(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

func files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// sockets completes the sockets of the daemons of this host.
func sockets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	found, _ := cli.Sockets()
	return found, cobra.ShellCompDirectiveNoFileComp
}

// first completes the first argument only. Arguments after -- can be files. args does not show the position
// of --, and cobra's own parsing adds one, so first searches os.Args.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch {
		case slices.Contains(os.Args, "--"):
			return files(cmd, args, word)
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

func towerNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	dir := ""
	if err := protocol.TowerEnvironment(cmd); err == nil {
		dir = cmd.Flags().Lookup("dir").Value.String()
	}
	return locksIn(dir, tower.FileName(""), tower.ValidateName), cobra.ShellCompDirectiveNoFileComp
}

func swarmTasks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return locksIn(string(swarm.DefaultDir()), swarm.FileName(""), swarm.ValidateTaskID), cobra.ShellCompDirectiveNoFileComp
}

// swarmTaskAndWorker completes a task and the worker with its lock.
func swarmTaskAndWorker(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return first(swarmTasks)(cmd, args, word)
	}
	var workers []string
	if found, err := swarm.DefaultDir().Check(args[0]); err == nil && found.Lock != nil {
		workers = append(workers, found.Lock.Worker)
	}
	return workers, cobra.ShellCompDirectiveNoFileComp
}

// locksIn returns the names of the locks in a directory, without opening their files.
func locksIn(dir, suffix string, valid func(string) error) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, entry := range entries {
		if name, is := strings.CutSuffix(entry.Name(), suffix); is && valid(name) == nil {
			names = append(names, name)
		}
	}
	return names
}
