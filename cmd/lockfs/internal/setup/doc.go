// Package setup has the commands that make this host one of a cluster, and take it out again: lockfs up, down and leave. They
// write its identity and settings, keep its daemon running by systemd or in the background, and see that the mount works.
package setup

import "github.com/spf13/cobra"

// Commands are all of them.
func Commands() []*cobra.Command {
	return []*cobra.Command{upCommand(), downCommand(), leaveCommand(), MountPointCommand()}
}
