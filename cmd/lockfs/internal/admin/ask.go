package admin

import (
	"context"
	"os"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// withAdmin runs a command that asks the cluster, and tells people what it waits for.
func withAdmin(ctx context.Context, flags *cli.ClusterFlags, ask func(context.Context, *cluster.Admin) error) error {
	return quietly(ctx, flags, func(ctx context.Context, admin *cluster.Admin) error {
		defer waitingForAnswer(flags)()
		return ask(ctx, admin)
	})
}

func waitingForAnswer(flags *cli.ClusterFlags) (over func()) {
	return cli.Waiting(os.Stderr, "waiting for an answer of the cluster, for %s at most", flags.Timeout)
}

// quietly is withAdmin for what tells people that itself, or has a screen of its own.
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

// openAdmin finds whom to ask.
func openAdmin(ctx context.Context, flags *cli.ClusterFlags) (*cluster.Admin, *cli.Asked, error) {
	asked, err := flags.Find(ctx)
	if err != nil {
		return nil, nil, err
	}
	admin, err := cluster.NewAdmin(asked.Addresses, asked.Security)
	return admin, asked, err
}

// change does an operation of an administrator, who is this process.
func change(ctx context.Context, admin *cluster.Admin, op *storepb.Op) error {
	host, err := cli.HostName()
	if err != nil {
		return err
	}
	return admin.Change(ctx, &storepb.Caller{
		Host: host, Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), Pid: uint32(os.Getpid()),
	}, op)
}
