package admin

import (
	"os"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
)

// whoSees is part of the help of listing commands.
const whoSees = `root asks the servers and sees everything. Other users see the locks that they
could stat; of a lock that they could not read, only its path and age. They ask
the mount of the working directory (or of PATH), else the only mount of the
host. Without a mount, or with --servers, they ask the servers for the same.`

// lookThrough returns the mount through which a command asks for users other than root, or "" if it asks the
// servers. root is the mount on the command line, if any.
func lookThrough(cmd *cobra.Command, root string) string {
	switch {
	case os.Geteuid() == 0:
		return ""
	case root != "" || cmd.Flags().Changed("servers"):
		return root
	}
	if here, err := os.Getwd(); err == nil {
		if root, err := mountRoot(here); err == nil {
			return root
		}
	}
	points, err := mountpoint.All()
	if err != nil || len(points) != 1 {
		return ""
	}
	if root, err = mountRoot(points[0]); err != nil {
		return ""
	}
	return root
}

// lockOf describes the holder of a lock; empty arguments are unknown.
func lockOf(format, holder, host, pid string) string {
	said := "lock without format"
	if format != "" && format != "none" {
		said = format + " lock"
	}
	if holder != "" && holder != pid {
		said += " of " + cli.Text(holder)
	}
	if pid != "" {
		said += ", pid " + cli.Text(pid)
	}
	if host != "" {
		said += " on " + cli.Word(host)
	}
	return said
}
