package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/storepb"
)

// withAdmin runs a request to the cluster, and prints on a terminal when it takes long.
func withAdmin(ctx context.Context, flags *cli.ClusterFlags, ask func(context.Context, *cluster.Admin) error) error {
	return quietly(ctx, flags, func(ctx context.Context, admin *cluster.Admin) error {
		defer waitingForAnswer(flags)()
		return ask(ctx, admin)
	})
}

func waitingForAnswer(flags *cli.ClusterFlags) (over func()) {
	return cli.Waiting(os.Stderr, "waiting up to %s for the cluster's reply", flags.Timeout)
}

// quietly is withAdmin without progress, for commands with their own or a full screen.
func quietly(ctx context.Context, flags *cli.ClusterFlags, ask func(context.Context, *cluster.Admin) error) error {
	ctx, cancel := context.WithTimeout(ctx, flags.Timeout)
	defer cancel()
	admin, asked, err := openAdmin(ctx, flags)
	if err != nil {
		return err
	}
	defer admin.Close()
	return asked.Explain(ask(ctx, admin))
}

// openAdmin connects to the target of the command.
func openAdmin(ctx context.Context, flags *cli.ClusterFlags) (*cluster.Admin, *cli.Asked, error) {
	asked, err := flags.Find(ctx)
	if err != nil {
		return nil, nil, err
	}
	admin, err := cluster.NewAdmin(asked.Addresses, asked.Security)
	return admin, asked, err
}

// change proposes an operation in the name of this process's user.
func change(ctx context.Context, admin *cluster.Admin, op *storepb.Op) error {
	host, err := cli.HostName()
	if err != nil {
		return err
	}
	return admin.Change(ctx, &storepb.Caller{
		Host: host, Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), Pid: uint32(os.Getpid()),
	}, op)
}

// mountRoot returns the root of the lockfs mount with a directory, whose path has no symbolic links.
func mountRoot(dir string) (string, error) {
	var own, above unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return "", &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	root := dir
	for root != "/" {
		parent := filepath.Dir(root)
		if err := unix.Stat(parent, &above); err != nil {
			return "", &os.PathError{Op: "stat", Path: parent, Err: err}
		}
		if above.Dev != own.Dev {
			break
		}
		root = parent
	}
	var system unix.Statfs_t
	if err := unix.Statfs(root, &system); err != nil {
		return "", &os.PathError{Op: "statfs", Path: root, Err: err}
	}
	control, err := os.Lstat(filepath.Join(root, controlDir))
	if system.Type != unix.FUSE_SUPER_MAGIC || err != nil || !control.IsDir() {
		return "", fmt.Errorf("it is not on a lockfs mount, but on the file system at %s; use rm (`lockfs doctor` lists the lockfs mounts)",
			root)
	}
	return root, nil
}

// controlDir is the hidden directory at the root of a mount.
const controlDir = ".lockfs"

// LockAttribute reads an extended attribute of a lock; empty outside of lockfs or without a value.
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
