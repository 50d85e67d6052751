// Command lockfs mounts a directory on every host of a cluster in which a lock is a file.
package main

import (
	"slices"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/audit"
	"lockfs/cmd/lockfs/internal/bench"
	"lockfs/cmd/lockfs/internal/bundle"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/daemon"
	"lockfs/cmd/lockfs/internal/doctor"
	"lockfs/cmd/lockfs/internal/manual"
	"lockfs/cmd/lockfs/internal/protocol"
	"lockfs/cmd/lockfs/internal/setup"
	"lockfs/cmd/lockfs/internal/ui"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/hostinfo"
)

func main() {
	if drifting := fault.BootTime(); drifting != nil {
		hostinfo.Simulate(drifting)
	}
	cli.Main(program)
}

// program is the one that goes by a name.
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
		`lockfs mounts one directory on every host of a cluster. What is created there exclusively on one host
(set -o noclobber, O_CREAT|O_EXCL, mkdir, ln, mv -n) exists on all of them, so programs written for one
machine exclude each other across hosts.

Every flag can also be set by a variable: --data is LOCKFS_DATA, --op-timeout is LOCKFS_OP_TIMEOUT. The variable of
--token is LOCKFS_JOIN_TOKEN; LOCKFS_TOKEN is the fencing token of the lock that a command runs under.

The exit code is 0, or 1 after an error, unless the help of a command says more of it.

`+manual.Listing(),
		slices.Concat(setup.Commands(), daemon.Commands(), admin.Commands(), protocol.Commands(), audit.Commands(),
			[]*cobra.Command{
				ui.Command(), doctor.Command(), bundle.Command(), bench.Command(), cli.VersionCommand(), docsCommand(),
			})...)
	root.Args, root.RunE = cli.KnownCommands, admin.Standing
	root.ValidArgsFunction = cobra.NoFileCompletions
	root.SetHelpCommand(manual.HelpCommand(cli.IsTerminal))
	complete(root)
	return root
}

// docsCommand makes what packages ship: what the manual has, and what lockfs up would write.
func docsCommand() *cobra.Command {
	return cli.Parent(manual.DocsCommand(cli.ProgramVersion()), setup.UnitsCommand())
}
