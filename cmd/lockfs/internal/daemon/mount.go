package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/daemon/sdnotify"
	"lockfs/fusefs"
)

func mountCommand() *cobra.Command {
	plan := new(mountPlan)
	daemon, token := false, ""
	cmd := &cobra.Command{
		Use:   "mount [--token TOKEN] DIR",
		Short: "Mount a cluster on a host without a server",
		Long: `Mount a cluster at DIR, which is created if it is missing, in the foreground.
The host stores no data. The mount follows the leader and survives the loss of
any server. umount, Ctrl-C or SIGTERM ends it. lockfs up does all of this under
systemd.

The first start needs a token from lockfs token create --role client. The mount
enrols with it and keeps its identity, and the addresses of the servers, in
/etc/lockfs/identity (for users other than root in ~/.config/lockfs/identity).

For /etc/fstab, link the program to /sbin/mount.lockfs and to
/sbin/mount.fuse.lockfs (called by mount -o remount), and write:

  10.0.0.1,10.0.0.2,10.0.0.3  /locks  lockfs  _netdev,nofail  0 0

With --insecure there are no certificates and no tokens; give --servers.`,
		Example: `  lockfs mount --token @/run/token /locks
  lockfs mount --daemon /locks`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if daemon {
				return detach(cmd.Context(), os.Args[1:])
			}
			var err error
			if plan.dir, err = absolute(args[0]); err != nil {
				return err
			}
			if os.Getenv(handoverVariable) != "" {
				return plan.run(cmd.Context(), nil)
			}
			if plan.token, err = readToken(token, plan.insecure, cmd.InOrStdin()); err != nil {
				return err
			}
			return plan.run(cmd.Context(), func() { reportReady(cmd.OutOrStdout(), args[0]) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&plan.servers, "servers", nil, "addresses of servers, separated by commas (default: those in the identity)")
	flags.StringVar(&plan.identity, "identity", "", "directory of this host's identity (default "+cli.DefaultIdentity()+")")
	flags.StringVar(&token, "token", "", "token for a client, or @FILE, or - for standard input; unused once the host has an identity")
	flags.BoolVar(&plan.insecure, "insecure", false, insecureUsage)
	flags.StringVar(&plan.host, "name", "", "name of this host in the cluster (default: from its identity, or the host name)")
	flags.BoolVar(&daemon, "daemon", false, "run in the background after the mount, with messages in the system log")
	flags.DurationVar(&plan.wait, "wait", defaultMountWait, "time limit for reaching the cluster")
	flags.StringVar(&plan.httpAddr, "http-addr", "", "address of /healthz, /metrics and the page of lockfs ui (default none)")
	cli.AddOpTimeout(flags, &plan.opTimeout)
	addLimits(flags, &plan.limits)
	plan.logs.Add(flags, "info")
	cli.Often(flags, "servers", "identity", "token", "insecure", "name", "daemon", "wait")
	return cmd
}

// run mounts, and returns after the unmount.
func (p *mountPlan) run(ctx context.Context, ready func()) error {
	logger, err := p.logs.Logger()
	if err != nil {
		return err
	}
	program, err := os.Executable() // before an upgrade replaces it
	if err != nil {
		return err
	}
	go tuneCollector(mountPercent)
	looking, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	asked := hangups()
	inherited, err := inherit()
	if err != nil {
		return err
	}
	defer func() { inherited.announceEnd(ctx) }()
	config := session.Config{OpTimeout: p.opTimeout, Logger: logger, MachineFiles: machineFiles(), Program: cli.ProgramVersion()}
	if err := p.secure(ctx, looking, &config); err != nil {
		return err
	}
	config.Host, config.SessionFile = p.host, cli.SessionFile(p.host, p.dir)
	started := inherited == nil // a parent process waits
	if started {
		inherited = pickUp(config.SessionFile, p.dir)
	}
	if inherited == nil {
		if err := requireHostNamespace(); err != nil {
			return err
		}
	}
	if inherited != nil {
		config.Inherited = inherited.session
	}
	sdnotify.Status("connecting to the cluster")
	client, err := session.Dial(looking, p.servers, config)
	if err != nil {
		return fmt.Errorf("no session with %s: %w; `lockfs doctor` shows the cause", strings.Join(p.servers, ","), err)
	}
	if p.source == "" {
		p.source = strings.Join(p.servers, ",")
	}
	metrics := cluster.NewMountMetrics()
	metrics.SetVersion(cli.ProgramVersion())
	metrics.Registry.MustRegister(CertificateCollector{cmp.Or(p.identity, cli.DefaultIdentity())})
	relay := cluster.NewProxy(p.host, p.servers, config.Security, logger)
	relay.ShowBudgets(metrics)
	defer relay.Close()
	var serving parts
	defer func() { serving.stop(logger) }()
	http, err := listenHTTP(p.httpAddr, p.protect)
	if err != nil && inherited == nil {
		return errors.Join(fmt.Errorf("listen for HTTP: %w", err), endSession(client, nil))
	} else if err != nil { // programs wait for the mount
		logger.Warn("HTTP is not served", "error", err)
	}
	about := cli.Daemon{Kind: "mount", Of: p.dir, Mount: p.dir}
	serveHTTP(http, about, relay, mountHandler(client, metrics), metrics, logger, &serving)
	serveSocket(cli.MountSocket(p.dir), relay.Server(), metrics, logger, &serving) // before the next guard: see lockfs down
	budgets := fusefs.NewBudgets(p.limits)
	metrics.AddBudgets(budgets.Pools()...)
	mounted, guard, err := mount(p.dir, client, fusefs.Options{
		Logger: logger, Budgets: budgets, FsName: p.source, MountOptions: p.options, RootIsNobody: p.rootIsNobody(client), Observer: metrics.ObserveMount,
	}, inherited)
	if err != nil && ctx.Err() == nil && inherited.isGuarded() { // the next process takes over the session
		return err
	}
	if err != nil {
		return errors.Join(err, endSession(client, nil))
	}
	metrics.SetMount(client)
	serveDebug(about, metrics.Registry, logger, &serving)
	sdnotify.Ready()
	if started {
		ready()
	}
	sdnotify.Watch(ctx, logger, sdnotify.Loop{Name: "session", Due: client.WatchdogDeadline})
	next := &upgrade{program: program, mounted: mounted, client: client, guard: guard, others: serving, logger: logger}
	over := !next.await(ctx, asked, next.gone())
	sdnotify.Stopping()
	guard.announceEnd()
	if !over {
		err = mounted.Unmount()
	}
	logStop(logger, endSession(client, mounted))
	if err := mounted.End(client.Answers()); err != nil {
		logger.Warn("the mount is in use, and ends with this process", "error", err)
	}
	return err
}

// secure loads the certificates for the connection. It renews them until ctx ends.
func (p *mountPlan) secure(ctx, looking context.Context, config *session.Config) (err error) {
	if p.insecure {
		if len(p.servers) == 0 {
			p.servers = []string{cli.DefaultAddress}
		}
		if p.host == "" {
			p.host, err = cli.HostName()
		}
		return err
	}
	keeper, err := p.identify(looking, config.Logger)
	if err != nil {
		return err
	}
	config.Security, config.Heard, config.Roster = keeper.Security(), keeper.Update, keeper.RosterVersion
	p.keeper = keeper
	go keeper.Run(ctx)
	return nil
}

// rootIsNobody implements the option of fusefs.Options.
func (p *mountPlan) rootIsNobody(client *session.Client) func(context.Context) (bool, error) {
	if p.keeper == nil {
		return nil
	}
	return func(ctx context.Context) (bool, error) {
		if err := client.AwaitUpdate(ctx, p.keeper.Known()); err != nil {
			return false, err
		}
		return p.keeper.RootSquashed(), nil
	}
}

func logStop(logger *slog.Logger, err error) {
	if err != nil {
		logger.Warn("the session was not closed, and expires later", "error", err)
	}
}

// machineFiles returns possible files for a machine ID on systems without one: a shared one first, for root.
func machineFiles() []string {
	files := []string{"/var/lib/lockfs/machine-id"}
	folder := os.Getenv("XDG_STATE_HOME")
	if home, err := os.UserHomeDir(); folder == "" && err == nil {
		folder = filepath.Join(home, ".local", "state")
	}
	if os.Geteuid() != 0 && filepath.IsAbs(folder) {
		files = append(files, filepath.Join(folder, "lockfs", "machine-id"))
	}
	return files
}
