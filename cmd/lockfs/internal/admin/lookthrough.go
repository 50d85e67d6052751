package admin

import (
	"os"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
)

// whoSees is for the help of commands that tell of many locks.
const whoSees = `root asks the servers and sees all. Everybody else sees what he could stat himself, and of a lock that he could not
read no more than its path and age, as a mount tells him: that which the working directory (or PATH) is on, else the only
one there is. Where there is none, or with --servers, the servers are asked for the same.`

// lookThrough answers the mount through which a command looks for this user, who is not root; empty: the servers are to be asked.
// root is the mount that he named, if any.
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

// lockOf says whose a lock is. What is empty is not known.
func lockOf(format, holder, host, pid string) string {
	said := "lock of no format"
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
