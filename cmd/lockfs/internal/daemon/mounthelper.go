package daemon

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/fusefs"
	"lockfs/fusefs/mountpoint"
)

// Names of this program for mount(8): for the type in /etc/fstab or after -t, and for the type in
// /proc/mounts.
const (
	MountHelper       = "mount.lockfs"
	MountHelperOfFuse = "mount.fuse.lockfs"
)

// MountHelperCommand takes the arguments of a mount helper: SOURCE DIR [-sfnv] [-o OPTIONS] [-t TYPE].
func MountHelperCommand() *cobra.Command {
	var (
		fake, verbose, sloppy, noMtab bool
		options                       []string
		kind                          string
	)
	cmd := &cobra.Command{
		Use:   MountHelper + " SERVER[:PORT],... DIR [-o OPTIONS]",
		Short: "Mount a lockfs cluster for mount(8)",
		Long: `Mount a lockfs cluster for mount(8) and /etc/fstab. The default port of a server
is 7420. OPTIONS, separated by commas:

  identity=DIR     identity of this host (default: /etc/lockfs/identity)
  insecure         the servers run with --insecure and need no identity
  name=NAME        name of this host (default: from its identity, or host name)
  op-timeout=15s   how long a call waits for a quorum before ETIMEDOUT
  wait=1m          how long to look for the cluster before giving up
  max-calls-per-user=256, max-waits-per-user=16384
                   limits for each user of the mount (lockfs help limits)
  log-level=info   debug, info, warn or error
  http-addr=ADDR   address of /healthz, /metrics and the page (default: none)
  ro, nodev, nosuid, noexec, noatime and others as for any file system
  remount          with options of the line above: change them while mounted

If the directory is already mounted from the same servers, the helper does
nothing. While lockfs is not mounted, programs cannot create files in DIR: the
helper makes the directory immutable, or covers it with a read-only tmpfs.`,
		Example: "  mount -t lockfs 10.0.0.1,10.0.0.2,10.0.0.3 /locks ",
		Args:    cobra.ExactArgs(2), SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := planFromFstab(args[0], args[1], options, sloppy)
			if err != nil || fake {
				return err
			}
			if plan.remount {
				return plan.change(cmd.ErrOrStderr())
			}
			if os.Getenv(cli.DetachedVariable) == "" {
				if source, found, err := mountpoint.Source(plan.dir); err == nil && found && source == mountpoint.ShownSource(plan.source) {
					return nil
				}
				protectMountPoint(cmd.ErrOrStderr(), plan.dir)
				return detach(cmd.Context(), os.Args[1:])
			}
			return plan.run(cmd.Context(), func() { reportReady(cmd.OutOrStdout(), plan.dir) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&fake, "fake", "f", false, "only check the arguments")
	flags.BoolVarP(&verbose, "verbose", "v", false, "has no effect")
	flags.BoolVarP(&noMtab, "no-mtab", "n", false, "has no effect")
	flags.BoolVarP(&sloppy, "sloppy", "s", false, "ignore unknown options")
	flags.StringSliceVarP(&options, "options", "o", nil, "options by comma")
	flags.StringVarP(&kind, "types", "t", "", "has no effect")
	return cmd
}

// protectMountPoint prevents programs from creating files in the bare mount point.
func protectMountPoint(w io.Writer, dir string) {
	if !mountpoint.Privileged() {
		return
	}
	if _, _, err := mountpoints.Protect(dir); err != nil {
		fmt.Fprintf(w, "lockfs: %s is not protected while lockfs is not mounted: %v\n", dir, err)
	}
}

// isOwn are the options for lockfs, not for the kernel.
var isOwn = map[string]bool{
	"name": true, "op-timeout": true, "wait": true, "log-level": true, "http-addr": true, "insecure": true, "identity": true,
	fusefs.CallsFlag: true, fusefs.WaitsFlag: true,
}

// kernelOptions go to the kernel. The others in quietOptions are for mount(8), systemd and libmount.
var (
	kernelOptions = map[string]bool{
		"ro": true, "dev": true, "nodev": true, "suid": true, "nosuid": true, "exec": true, "noexec": true,
	}
	quietOptions = map[string]bool{
		"rw": true, "defaults": true, "auto": true, "noauto": true, "user": true, "nouser": true, "users": true,
		"owner": true, "group": true, "_netdev": true, "nofail": true, "atime": true, "noatime": true,
		"relatime": true, "norelatime": true, "diratime": true, "nodiratime": true, "async": true, "sync": true,
	}
)

func planFromFstab(source, dir string, options []string, sloppy bool) (*mountPlan, error) {
	plan := &mountPlan{source: source, opTimeout: session.DefaultOpTimeout, wait: defaultMountWait, logs: cli.LogFlags{Format: "text", Level: "info"}}
	for _, server := range strings.Split(source, ",") {
		if !strings.Contains(server, ":") {
			server += cli.DefaultAddress[strings.LastIndex(cli.DefaultAddress, ":"):]
		}
		plan.servers = append(plan.servers, server)
	}
	var err error
	if plan.dir, err = absolute(dir); err != nil {
		return nil, err
	}
	plan.remount = slices.Contains(options, "remount")
	for _, option := range options {
		if err := plan.take(option, sloppy || plan.remount); err != nil { // a remount has the options of /proc/mounts
			return nil, err
		}
	}
	return plan, nil
}

func (p *mountPlan) take(option string, sloppy bool) error {
	name, value, _ := strings.Cut(option, "=")
	switch {
	case option == "remount":
	case p.remount && isOwn[name]:
		p.fixed = append(p.fixed, name)
	case option == "insecure":
		p.insecure = true
	case name == "identity":
		p.identity = value
	case name == "name":
		p.host = value
	case name == "http-addr":
		p.httpAddr = value
	case name == "log-level":
		p.logs.Level = value
	case name == fusefs.CallsFlag, name == fusefs.WaitsFlag:
		most, err := strconv.ParseUint(value, 10, 32)
		if err != nil || most == 0 {
			return fmt.Errorf("option %s: give a number of 1 or more", option)
		}
		if name == fusefs.CallsFlag {
			p.limits.CallsPerUser = most
		} else {
			p.limits.WaitsPerUser = most
		}
	case name == "op-timeout", name == "wait":
		duration, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("option %s: %w", option, err)
		}
		if name == "wait" {
			p.wait = duration
		} else {
			p.opTimeout = duration
		}
	case kernelOptions[option], option == "rw" && p.remount:
		p.options = append(p.options, option)
	case !quietOptions[option] && !strings.HasPrefix(option, "x-") && !strings.HasPrefix(option, "comment=") && !sloppy:
		return fmt.Errorf("unknown option %q; see %s --help", option, MountHelper)
	}
	return nil
}
