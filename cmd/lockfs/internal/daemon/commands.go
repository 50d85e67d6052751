// Package daemon has the commands that go on running: a server, a mount, both for trying out, the helper of mount(8), and
// the process that guards a mount; and what makes, mends or looks into the data directory of a server that does not run.
package daemon

import "github.com/spf13/cobra"

// Commands are all of them.
func Commands() []*cobra.Command {
	return []*cobra.Command{devCommand(), serverCommand(), mountCommand(), guardCommand(), takesOverCommand(), restoreCommand()}
}
