// Package protocol has the commands that hold locks or wait for them: run and wait for locks of any format, and those of each
// protocol. What they have in common: who has a lock ([lockState], --json), what a waiting one says (notice), the command that is
// run while a lock is held (child), and how they end (package cli).
package protocol

import "github.com/spf13/cobra"

// Commands are all of them.
func Commands() []*cobra.Command {
	return []*cobra.Command{swarmCommand(), beadsCommand(), towerCommand(), semaphoreCommand(), forrstCommand(), runCommand(), waitCommand()}
}
