package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs"
)

// mountPlan is a mount without a voter.
type mountPlan struct {
	servers   []string
	source    string // what /proc/mounts says; empty: the servers
	dir       string
	host      string
	opTimeout time.Duration
	wait      time.Duration // for the cluster, before giving up
	options   []string      // of the file system: nodev, nosuid, noexec, ...
	logs      cli.LogFlags
	httpAddr  string   // empty: none
	remount   bool     // only change the options of the file system
	fixed     []string // other options that were given for that
}

const defaultMountWait = time.Minute

// longestName is what the name of a session file may have, in bytes, besides what is added to it.
const longestName = 200

func mountCommand() *cobra.Command {
	plan := new(mountPlan)
	daemon := false
	cmd := &cobra.Command{
		Use:   "mount --servers HOST:PORT,... DIR",
		Short: "Mount the locks of a cluster on a host that is not a voter",
		Long: `Mount the locks of a cluster at DIR, which is created if it is missing. This host keeps no data. Any of the
servers will do to find the others; the mount follows the leader and survives the loss of any server.
umount, Ctrl-C or SIGTERM ends it.

For /etc/fstab, link the program to /sbin/mount.lockfs and /sbin/mount.fuse.lockfs (which mount -o remount calls), and write:

  10.0.0.1,10.0.0.2,10.0.0.3  /locks  lockfs  _netdev,nofail  0 0`,
		Example: `  lockfs mount --servers 10.0.0.1:7421,10.0.0.2:7421 /locks
  lockfs mount --servers 10.0.0.1:7421 --daemon /locks`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if daemon {
				return detach(cmd.Context(), os.Args[1:])
			}
			var err error
			if plan.dir, err = absolute(args[0]); err != nil {
				return err
			}
			return plan.run(cmd.Context(), func() { reportReady(cmd.OutOrStdout(), args[0]) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&plan.servers, "servers", []string{cli.DefaultAPIAddress}, "API addresses of members, host:port, by comma")
	flags.StringVar(&plan.host, "name", "", "how this host is called (default: its host name)")
	flags.BoolVar(&daemon, "daemon", false, "detach from the terminal once it is mounted; messages go to the system log")
	flags.DurationVar(&plan.wait, "wait", defaultMountWait, "how long to look for the cluster before giving up")
	flags.StringVar(&plan.httpAddr, "http-addr", "", "where /healthz and /metrics are served (default nowhere)")
	cli.AddOpTimeout(flags, &plan.opTimeout)
	plan.logs.Add(flags, "info")
	return cmd
}

// run mounts, and returns once it is unmounted by whomever.
func (p *mountPlan) run(ctx context.Context, ready func()) error {
	logger, err := p.logs.Logger()
	if err != nil {
		return err
	}
	if p.host == "" {
		if p.host, err = cli.HostName(); err != nil {
			return err
		}
	}
	looking, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	client, err := session.Dial(looking, p.servers, session.Config{
		Host: p.host, OpTimeout: p.opTimeout, Logger: logger, SessionFile: p.sessionFile(), MachineFiles: machineFiles(),
	})
	if err != nil {
		return fmt.Errorf("no session with %s: %w", strings.Join(p.servers, ","), err)
	}
	if p.source == "" {
		p.source = strings.Join(p.servers, ",")
	}
	metrics := cluster.NewMountMetrics()
	metrics.SetVersion(cli.ProgramVersion())
	metrics.Registry.MustRegister(CertificateCollector{"/etc/lockfs/identity"})
	var serving parts
	defer func() { serving.stop(logger) }()
	if err := serveHTTP(p.httpAddr, mountHandler(client, metrics), logger, &serving); err != nil {
		return errors.Join(err, endSession(client, nil))
	}
	mounted, err := mount(p.dir, client, fusefs.Options{
		Logger: logger, FsName: p.source, MountOptions: p.options, Observer: metrics.ObserveMount,
	})
	if err != nil {
		return errors.Join(err, endSession(client, nil))
	}
	metrics.SetMount(client)
	serveDebug(cli.Daemon{Kind: "mount", Of: p.dir, Mount: p.dir}, metrics.Registry, logger, &serving)
	ready()
	gone := make(chan struct{})
	go func() {
		mounted.Wait()
		close(gone)
	}()
	select {
	case <-ctx.Done():
		err = mounted.Unmount()
	case <-gone:
	}
	logStop(logger, endSession(client, mounted))
	if err := mounted.End(client.Answers()); err != nil {
		logger.Warn("the mount is still in use; it ends with this process", "error", err)
	}
	return err
}

func logStop(logger *slog.Logger, err error) {
	if err != nil {
		logger.Warn("the session was not ended; it ends by itself", "error", err)
	}
}

// sessionFile is where a later process on this boot finds the session of this one: hosts in namespaces
// of one machine may share the folder, so their names are part of it.
func (p *mountPlan) sessionFile() string {
	folder := os.Getenv("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 || folder == "" {
		folder = "/run"
	}
	if os.Geteuid() != 0 && folder == "/run" {
		return "" // nowhere to keep it: a successor opens a session of its own
	}
	return filepath.Join(folder, "lockfs", sessionFileName(p.host, p.dir))
}

// sessionFileName is another one for each host and directory.
func sessionFileName(host, dir string) string {
	name := url.PathEscape(host) + "," + url.PathEscape(dir)
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + ".session"
}

// machineFiles is where an id of this machine may be, if the system has none: all users' first, which root can make.
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
