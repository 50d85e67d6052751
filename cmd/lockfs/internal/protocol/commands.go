// Package protocol has the commands that hold locks or wait for them: run and wait for locks of any format, and those of each
// protocol. What they have in common: who has a lock ([lockState], --json), what a waiting one says (notice), the command that is
// run while a lock is held (child), and how they end (package cli).
package protocol

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// Commands returns all of them. They touch the file system of a lock, but for those of Forrst.
func Commands() []*cobra.Command {
	commands := []*cobra.Command{swarmCommand(), beadsCommand(), towerCommand(), semaphoreCommand(), requireMounted(runCommand()), requireMounted(waitCommand())}
	for _, cmd := range commands {
		cli.OnMount(cmd)
	}
	return append(commands, forrstCommand())
}
