package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/health"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
)

func downCommand() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop lockfs on this host until the next lockfs up",
		Long: `Stop lockfs on this host: unmount, stop the daemon, and disable its start at
boot. The host stays a member, with its identity and, on a server, its data;
lockfs up starts it again. To remove the host for good, see lockfs leave.

The command refuses while programs use the mount, and names them. With --force
it takes the mount away from them and kills a daemon that does not stop. Lock
files stay; flock and fcntl locks of this host are released. The mount point
stays protected, so programs cannot lock in it meanwhile.

With three servers the other two go on. The command refuses to stop a server
without which the others have no quorum: calls on all hosts would fail until it
is back. --force stops it all the same.`,
		Example: "  lockfs down\n  lockfs down --force",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needRoot("lockfs down"); err != nil {
				return err
			}
			h, err := thisHost()
			if err != nil {
				return err
			}
			if h == nil {
				return notSetUp()
			}
			r := &report{w: cmd.OutOrStdout()}
			r.title("stopping %s", h.describe())
			if err := h.checkNotNeeded(cmd.Context()); err != nil && !force {
				return err
			}
			if err := h.down(cmd.Context(), r, force); err != nil {
				return err
			}
			if !r.changed {
				r.title("it is stopped already; start it with `lockfs up`")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also if programs use the mount, or the others need this server")
	return cmd
}

// checkNotNeeded returns an error if this server runs, the cluster works, and calls of other hosts would fail
// without it. A daemon without a reply can be stopped.
func (h *host) checkNotNeeded(ctx context.Context) (needed error) {
	if h.role != identity.Server {
		return nil
	}
	_ = h.ask(ctx, func(ctx context.Context, asked *cluster.Admin) error {
		healthy, nodes, err := asked.Health(ctx, false)
		if err != nil {
			return err
		}
		if needed = neededForQuorum(h.name, healthy, nodes); needed == nil && healthy.Confirmed && isOnlyVoter(h.name, nodes) {
			needed = h.checkUnused(ctx, asked)
		}
		return nil
	})
	return needed
}

// neededForQuorum returns an error if the voters that answer are a quorum only with this one. They need it
// also while none confirms a read, as in an election: without it they would have no leader afterwards.
func neededForQuorum(name string, healthy health.Health, nodes []cluster.NodeStatus) error {
	votes, answering := false, 0
	for _, node := range nodes {
		switch {
		case node.Voter && node.Name == name:
			votes = true
		case node.Voter && node.Err == nil:
			answering++
		}
	}
	works := healthy.Confirmed || healthy.HasQuorum()
	if !works || !votes || healthy.Voters == 1 || answering > healthy.Voters/2 {
		return nil
	}
	return fmt.Errorf("this server is needed for a quorum: without it %d of %d voters would answer, and calls on all hosts would fail. "+
		"Start the other servers first (`lockfs status` shows them), or stop it all the same with --force", answering, healthy.Voters)
}

func isOnlyVoter(name string, nodes []cluster.NodeStatus) bool {
	voters := slices.DeleteFunc(slices.Clone(nodes), func(node cluster.NodeStatus) bool { return !node.Voter })
	return len(voters) == 1 && voters[0].Name == name
}

// checkUnused returns an error if other hosts use the cluster of which this is the only server.
func (h *host) checkUnused(ctx context.Context, asked *cluster.Admin) error {
	sessions, err := asked.Sessions(ctx)
	if err != nil {
		return nil // the next step reports it
	}
	others := make(map[string]bool)
	for _, session := range sessions {
		if host := session.GetRecord().GetHost(); host != h.name {
			others[host] = true
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("this is the only server, and %d other hosts have the mount (`lockfs session list` shows them): calls there would fail. "+
		"Stop it all the same with --force", len(others))
}

func notSetUp() error {
	return fmt.Errorf("this host is not set up (%s has no role): set it up with `lockfs up TOKEN`", settingsFile)
}

// down unmounts and then stops the daemon. The unmount is atomic and comes first, because programs can start
// to use the mount at any time. With force, the daemon unmounts and handles its users.
func (h *host) down(ctx context.Context, r *report, force bool) error {
	service, err := h.service()
	if err != nil {
		return err
	}
	running, err := service.running(ctx)
	if err != nil {
		return err
	}
	if !force {
		if err := h.unmount(r, false); err != nil {
			return err
		}
	}
	if running {
		defer r.waits("for the daemon to stop")()
	}
	// The service may be about to start.
	if err := service.stop(ctx, force); err != nil {
		return err
	}
	if running {
		r.did("daemon", "stopped")
	}
	return h.unmount(r, true) // in case the daemon left it
}

// unmount unmounts the directory if lockfs is mounted there; with lazy also while programs use it.
func (h *host) unmount(r *report, lazy bool) error {
	mounted, err := h.mounted()
	if err != nil || !mounted {
		return err
	}
	err = mountpoint.Detach(h.mount, lazy)
	for err == nil && lazy && mounted { // a dead mount may be below
		if mounted, err = h.mounted(); mounted {
			err = errors.Join(err, mountpoint.Detach(h.mount, true))
		}
	}
	switch {
	case errors.Is(err, syscall.EBUSY):
		users, err := mountpoint.Users(h.mount)
		if err != nil {
			return err
		}
		return &inUseError{h.mount, users}
	case err != nil:
		return fmt.Errorf("unmount %s: %w", h.mount, err)
	}
	r.did("mount", "unmounted %s", h.mount)
	return nil
}

// mounted reports whether lockfs is mounted, with or without a daemon.
func (h *host) mounted() (bool, error) {
	mounts, err := mountpoint.All()
	return slices.Contains(mounts, h.mount), err
}

// inUseError lists the users of a mount.
type inUseError struct {
	dir   string
	users []mountpoint.User
}

func (e *inUseError) Error() string {
	if len(e.users) == 0 {
		return fmt.Sprintf("%s is in use: check for mounts below it; --force unmounts it anyway", e.dir)
	}
	const most = 10
	var b strings.Builder
	for i, user := range e.users {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(e.users)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s (pid %d): %s", cli.Text(user.Name), user.PID, cli.Text(user.Uses))
	}
	return fmt.Sprintf("%s is in use: end these programs, or unmount anyway with --force:%s", e.dir, &b)
}

// describe returns the name and role of this host.
func (h *host) describe() string {
	if h.name == "" {
		return "this " + h.role.String()
	}
	return fmt.Sprintf("%s, a %s", h.name, h.role)
}
