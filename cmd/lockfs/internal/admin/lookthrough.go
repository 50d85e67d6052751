package admin

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

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

// LockAttribute is what a mount of lockfs knows of a lock; empty where there is nothing, which is anywhere else.
func LockAttribute(path, name string) (string, error) {
	var value [1024]byte
	n, err := unix.Lgetxattr(path, "user.lockfs."+name, value[:])
	switch {
	case errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP):
		return "", nil
	case err != nil:
		return "", &os.PathError{Op: "getxattr", Path: path, Err: err}
	}
	return string(value[:n]), nil
}
