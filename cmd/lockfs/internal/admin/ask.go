package admin

import (
	"context"
	"os"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
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
