package daemon

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

func serverCommand() *cobra.Command {
	s := new(service)
	var logs cli.LogFlags
	token := ""
	cmd := &cobra.Command{
		Use:   "server --name NAME --data DIR (--bootstrap | --token TOKEN)",
		Short: "Run a voter, and mount it with --mount",
		Long: `Run a voter of a cluster. The first one is started with --bootstrap, each other one with a token that
` + "`lockfs token create --role server`" + ` makes; it keeps trying until a server answers, and adds itself. Once the data directory
belongs to a cluster both are ignored, so the same command line serves every start. All users of a host can see command lines:
give a token in the variable LOCKFS_TOKEN to keep it from them. "lockfs up" does all this, and keeps the server running.

Three voters survive the loss of any one, five of any two. SIGTERM stops a voter cleanly.`,
		Example: `  lockfs server --name a --data /var/lib/lockfs --mount /locks --bootstrap --addr 10.0.0.1:7420
  LOCKFS_TOKEN=lockfs-server-AYZlm2x0... lockfs server --name b --data /var/lib/lockfs --mount /locks --addr 10.0.0.2:7420
  lockfs server --name b --data /var/lib/lockfs --insecure --join 10.0.0.1:7420 --addr 10.0.0.2:7420`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.config.Bootstrap && len(s.config.Join) > 0 {
				return errors.New("--bootstrap begins a cluster and --join enters one: give one of them")
			}
			if err := s.takeToken(token); err != nil {
				return err
			}
			var err error
			if s.config.Logger, err = logs.Logger(); err != nil {
				return err
			}
			if s.hostName = s.config.Name; s.config.Insecure {
				if s.hostName, err = cli.HostName(); err != nil {
					return err
				}
			}
			if s.mountDir != "" {
				if s.mountDir, err = absolute(s.mountDir); err != nil {
					return err
				}
			}
			s.socket = cli.ServerSocket(s.config.Name)
			s.ready = func() { fmt.Fprintf(cmd.OutOrStdout(), "lockfs: %s ready\n", s.config.Name) }
			return s.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.config.Name, "name", "", "name of this node, unique in the cluster (required)")
	flags.StringVar(&s.config.DataDir, "data", "", "data directory (required)")
	flags.StringVar(&s.config.Address, "addr", cli.DefaultAddress, "where it listens for voters, mounts and commands")
	flags.StringVar(&s.config.Advertise, "advertise", "", "where they reach it, if that differs; needed for --addr 0.0.0.0:7420")
	flags.BoolVar(&s.config.Insecure, "insecure", false, insecureUsage)
	flags.StringVar(&s.httpAddr, "http-addr", cli.DefaultHTTPAddress, "where /healthz and /metrics are served; empty: nowhere")
	flags.BoolVar(&s.config.Bootstrap, "bootstrap", false, "begin a new cluster")
	flags.StringVar(&token, "token", "", "enter a cluster, at the first start")
	flags.StringSliceVar(&s.config.Join, "join", nil, "enter a cluster with --insecure: addresses of members, host:port, by comma")
	flags.StringVar(&s.mountDir, "mount", "", "also mount the locks here; created if it is missing")
	flags.Uint64Var(&s.config.MaxInodes, "max-inodes", 0, "files, directories and links there may be in the whole cluster (default 4194304)")
	flags.Uint64Var(&s.config.MaxInodesPerUser, "max-inodes-per-user", 0, "as many of them may be of one user other than root (default half of them)")
	flags.Var(cli.Size(&s.config.MaxBytes), "max-bytes",
		"what they may need in memory in the whole cluster, with suffix K, M, G or T (default a quarter of the memory, 256M at least)")
	flags.Var(cli.Size(&s.config.MaxBytesPerUser), "max-bytes-per-user", "as much of that may be of one user other than root (default half of it)")
	flags.Uint64Var(&s.config.MaxSessions, "max-sessions", 0, "mounts there may be in the whole cluster (default 10000)")
	flags.Var(cli.OptionalDuration(&s.config.LockDelay), "lock-delay",
		"how long nobody gets a flock or fcntl lock of a mount that was given up on; 0: no time (default 15s)")
	flags.DurationVar(&s.config.SessionTTL, "session-term", cluster.DefaultSessionTTL,
		"how long a mount may be silent before the cluster gives it up; the same on all servers")
	flags.Uint64Var(&s.config.SnapshotEntries, "snapshot-entries", 0, "log entries between two snapshots, at least (default 8192)")
	s.forrst.add(flags)
	cli.AddOpTimeout(flags, &s.opTimeout)
	logs.Add(flags, "info")
	cmd.AddCommand(inspectCommand())
	return cmd
}

// takeToken takes what is given to enter a cluster with.
func (s *service) takeToken(text string) (err error) {
	switch {
	case s.config.Insecure && text != "":
		return errors.New("a cluster with --insecure has no tokens: enter it with --join")
	case !s.config.Insecure && len(s.config.Join) > 0:
		return errors.New("--join is for clusters with --insecure: enter this one with --token, which `lockfs token create --role server` makes")
	case s.config.Bootstrap && text != "":
		return errors.New("--bootstrap begins a cluster and --token enters one: give one of them")
	case text == "":
		return nil
	}
	if s.token, err = identity.ParseToken(text); err != nil {
		return fmt.Errorf("--token: %w", err)
	}
	return nil
}
