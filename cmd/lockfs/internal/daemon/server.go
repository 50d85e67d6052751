package daemon

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
)

func serverCommand() *cobra.Command {
	s := new(service)
	var logs cli.LogFlags
	token := ""
	cmd := &cobra.Command{
		Use:   "server --data DIR [--token TOKEN]",
		Short: "Run a server, and mount it with --mount",
		Long: `Run a server of a cluster in the foreground. Create the data directory of the
first server once with lockfs server init. Start each other server with a token
from lockfs token create --role server: it tries until a server answers, and
joins. Later starts ignore the token, so the same command line works for every
start. lockfs up does all of this under systemd. A server without data and
without token ends with an error: it never creates a cluster.

Three voters survive the loss of any one, five of any two. SIGTERM stops a
server cleanly. With --insecure there are no certificates and no tokens, and
servers join with --join.` + cli.More + `To change its address, start a server with another --addr or --advertise: it
informs the others. If all servers were stopped and all addresses changed, give
--join with the new address of another server.

The exit code is 4 if the data directory belongs to no cluster: join one, or
create one. The unit of lockfs up does not restart the server then. The exit code
is 1 after any other error.`,
		Example: `  lockfs server --data /var/lib/lockfs --mount /locks --addr 10.0.0.1:7420
  lockfs server --data /var/lib/lockfs --mount /locks --addr 10.0.0.2:7420 --token @/run/token`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if s.config.Logger, err = logs.Logger(); err != nil {
				return err
			}
			if s.hostName, err = cli.HostName(); err != nil {
				return err
			}
			if s.config.Name == "" {
				s.config.Name = s.hostName
			}
			if !s.config.Insecure {
				s.hostName = s.config.Name // the name in its certificate
			}
			if os.Getenv(handoverVariable) == "" { // otherwise it has joined
				if s.token, err = readToken(token, s.config.Insecure, cmd.InOrStdin()); err != nil {
					return err
				}
			}
			if !cmd.Flags().Changed("min-free") {
				if s.config.MinFree, err = minFreeOf(s.config.DataDir); err != nil {
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
			if err = s.run(cmd.Context()); cluster.IsWithoutCluster(err) {
				return cli.Exit(cli.ExitWithoutCluster, err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.config.Name, "name", "", "name in the cluster (default: the host name)")
	flags.StringVar(&s.config.DataDir, "data", "", "data directory (required)")
	flags.StringVar(&s.config.Address, "addr", cli.DefaultAddress, "address for servers, mounts and commands")
	flags.StringVar(&s.config.Advertise, "advertise", "", "address that they use, if it differs from --addr; needed for --addr 0.0.0.0:7420")
	flags.StringVar(&token, "token", "", "join with this token for a server, or @FILE, or - for standard input")
	flags.BoolVar(&s.config.Insecure, "insecure", false, insecureUsage)
	flags.StringVar(&s.httpAddr, "http-addr", cli.DefaultHTTPAddress, "address of /healthz, /metrics and the page of lockfs ui; empty: none")
	flags.StringSliceVar(&s.config.Join, "join", nil,
		"addresses of members, separated by commas: to join with --insecure; on a member, new addresses of the others")
	flags.BoolVar(&s.config.Nonvoter, "nonvoter", false, "join without a vote, until lockfs member promote")
	flags.DurationVar(&s.config.RemoveDead, "remove-dead", 0,
		"remove a server without an answer for this long, if two others are left with a quorum; the same on all servers; 0: never")
	flags.StringVar(&s.mountDir, "mount", "", "mount point on this host; created if it is missing")
	flags.Uint64Var(&s.config.MaxInodes, "max-inodes", 0, "limit of files, directories and links (default 4194304)")
	flags.Uint64Var(&s.config.MaxInodesPerUser, "max-inodes-per-user", 0, "the same for each user except root (default an eighth)")
	flags.Var(cli.Size(&s.config.MaxBytes), "max-bytes",
		"limit of their bytes in memory, with suffix K, M, G or T (default a quarter of the memory, at least 256M)")
	flags.Var(cli.Size(&s.config.MaxBytesPerUser), "max-bytes-per-user", "the same for each user except root (default an eighth)")
	flags.Uint64Var(&s.config.MaxSessions, "max-sessions", 0, "limit of mounts in the cluster (default 10000)")
	flags.Uint64Var(&s.config.MaxSessionsPerHost, "max-sessions-per-host", 0, "limit of mounts of a host (default 256)")
	flags.Uint64Var(&s.config.MaxLocksPerUser, "max-locks-per-user", 0,
		"limit of flock and fcntl locks and waiting requests of a user on a host; 8 times this for a host (default 16384)")
	flags.Uint64Var(&s.config.MaxLocksPerFile, "max-locks-per-file", 0, "the same for a user in one file, on all hosts (default 16384)")
	flags.Var(cli.OptionalDuration(&s.config.LockDelay), "lock-delay",
		"time for which flock and fcntl locks of an expired session stay held (default 15s)")
	flags.DurationVar(&s.config.SessionTTL, "session-term", cluster.DefaultSessionTTL,
		"TTL of a mount's session; the same on all servers")
	s.config.Leases = true
	flags.Var(cli.OnOff(&s.config.Leases), "leases",
		"on: mounts answer reads of unchanged files themselves; the same on all servers (see lockfs help mounts)")
	flags.Uint64Var(&s.config.SnapshotEntries, "snapshot-entries", 0, "fewest log entries between two snapshots (default 8192)")
	flags.Var(cli.Size(&s.config.MinFree), "min-free",
		"free space required on the disk of the data directory: with less on any server, lockfs refuses all growth; 0: no check "+
			"(default 256M, or a sixteenth of a smaller disk)")
	flags.StringVar(&s.config.BackupDir, "backup-dir", "", "`directory` for scheduled backups of this server; empty: none")
	flags.DurationVar(&s.config.BackupEvery, "backup-every", time.Hour, "interval of scheduled backups")
	flags.IntVar(&s.config.BackupKeep, "backup-keep", 24, "number of scheduled backups to keep")
	s.forrst.add(flags)
	cli.AddOpTimeout(flags, &s.opTimeout)
	addLimits(flags, &s.limits)
	logs.Add(flags, "info")
	cli.Often(flags, "name", "data", "addr", "advertise", "mount", "token", "insecure", "nonvoter")
	cmd.AddCommand(initCommand(), inspectCommand(), recoverCommand())
	return cmd
}
