// Package setup has the commands to add this host to a cluster and to remove it: `lockfs up`, `down` and
// `leave`. They write its identity and settings, run its daemon by systemd or in the background, and check
// that the mount works.
package setup

import "github.com/spf13/cobra"

// Commands returns all commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{upCommand(), downCommand(), leaveCommand(), MountPointCommand()}
}
