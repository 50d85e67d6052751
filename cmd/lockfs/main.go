// Command lockfs mounts a directory on every host of a cluster in which a lock is a file.
package main

import (
	"slices"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/audit"
	"lockfs/cmd/lockfs/internal/bench"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/daemon"
	"lockfs/cmd/lockfs/internal/debugbundle"
	"lockfs/cmd/lockfs/internal/doctor"
	"lockfs/cmd/lockfs/internal/manual"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/cmd/lockfs/internal/setup"
	"lockfs/cmd/lockfs/internal/ui"
)

func main() { cli.Main(program) }

// program returns the program for the name under which it was called.
func program(name string) cli.Program {
	switch name {
	case daemon.MountHelper, daemon.MountHelperOfFuse:
		return cli.Program{Root: daemon.MountHelperCommand(), Name: "lockfs"}
	case protocol.SwarmScript:
		return cli.Program{Root: protocol.SwarmScriptCommand(), Name: protocol.SwarmScript}
	}
	return cli.Program{Root: rootCommand(), Name: "lockfs"}
}

func rootCommand() *cobra.Command {
	root := cli.Root("lockfs", "A directory on every host of a cluster in which a lock is a file",
		`lockfs mounts one directory on every host of a cluster. In it, a lock is a file.

  lockfs dev                            try it on this machine
  lockfs run /locks/x.lock ./backup.sh  run a command; its lock frees itself
  lockfs why /locks/x.lock              find the holder of a lock
  lockfs                                show the state of this host and cluster`+cli.More+variables,
		slices.Concat(setup.Commands(), daemon.Commands(), admin.Commands(), protocol.Commands(), audit.Commands(),
			[]*cobra.Command{
				ui.Command(), doctor.Command(), debugbundle.Command(), bench.Command(), cli.VersionCommand(), docsCommand(),
			})...)
	cli.ShowVersion(root)
	root.Args, root.RunE = cli.KnownCommands, admin.Standing
	root.ValidArgsFunction = cobra.NoFileCompletions
	root.SetHelpCommand(manual.HelpCommand(cli.IsTerminal, cli.FullHelp))
	root.InitDefaultCompletionCmd()
	order(root)
	complete(root)
	cli.Usage(root, overview(root))
	return root
}

// variables is about all commands.
const variables = `Each flag can also be set by a variable: --op-timeout by LOCKFS_OP_TIMEOUT. The
exception is --token with ` + cli.JoinTokenVariable + `; LOCKFS_TOKEN is a fencing token.
The exit code is 0, or 1 after an error, unless the help of a command has others.`

// docsCommand returns the command that prints the files of packages, and the units that lockfs up would
// write.
func docsCommand() *cobra.Command {
	return cli.Parent(manual.DocsCommand(cli.ProgramVersion()), setup.UnitsCommand())
}
