// Package daemon has the commands of long-running processes: server, mount, dev, the helper of mount(8), and
// the guard of a mount. It also has the commands for the data directory of a stopped server: init, inspect,
// recover and restore.
package daemon

import "github.com/spf13/cobra"

// Commands returns all commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{devCommand(), serverCommand(), mountCommand(), guardCommand(), takesOverCommand(), restoreCommand()}
}
