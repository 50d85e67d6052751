// Command lockfs mounts a directory on every host of a cluster in which a lock is a file.
package main

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/manual"
)

func main() { Main(program) }

// program is the one that goes by a name.
func program(name string) Program {
	switch name {
	case mountHelper, mountHelperOfFuse:
		return Program{mountHelperCommand(), "lockfs"}
	case swarmScript:
		return Program{swarmScriptCommand(), swarmScript}
	}
	return Program{rootCommand(), "lockfs"}
}

func rootCommand() *cobra.Command {
	root := Root("lockfs", "A directory on every host of a cluster in which a lock is a file",
		`lockfs mounts one directory on every host of a cluster. What is created there exclusively on one host
(set -o noclobber, O_CREAT|O_EXCL, mkdir, ln, mv -n) exists on all of them, so programs written for one
machine exclude each other across hosts.

Every flag can also be set by a variable: --data is LOCKFS_DATA, --op-timeout is LOCKFS_OP_TIMEOUT.

The exit code is 0, or 1 after an error, unless the help of a command says more of it.

`+manual.Listing(),
		devCommand(), serverCommand(), mountCommand(), statusCommand(), memberCommand(), sessionCommand(),
		hostCommand(), locksCommand(), ruleCommand(), eventsCommand(), rmCommand(), swarmCommand(), beadsCommand(), towerCommand(),
		semaphoreCommand(), forrstCommand(), runCommand(), waitCommand(),
		benchCommand(), versionCommand(), guardCommand(), manual.DocsCommand(programVersion()))
	root.SetHelpCommand(manual.HelpCommand(isTerminal))
	complete(root)
	return root
}
