// Package protocol has the commands that hold locks or wait for them. run and wait are for locks of any
// format, the others for one protocol each. All report the state of a lock alike ([lockState], --json), and
// the wait for it (notice). A command under a lock is a child; package cli has the exit codes.
package protocol

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// Commands returns all commands of this package. All except those of Forrst touch the file system of a lock.
func Commands() []*cobra.Command {
	commands := []*cobra.Command{swarmCommand(), beadsCommand(), towerCommand(), semaphoreCommand(), requireMounted(runCommand()), requireMounted(waitCommand())}
	for _, cmd := range commands {
		cli.OnMount(cmd)
	}
	return append(commands, forrstCommand())
}
