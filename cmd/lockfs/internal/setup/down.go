package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

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

With three servers the other two go on. With two, nothing goes on until this one
is back.`,
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
			if err := h.down(cmd.Context(), r, force); err != nil {
				return err
			}
			if !r.changed {
				r.title("it was stopped already; `lockfs up` starts it")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also while programs use the mount; kill a hanging daemon")
	return cmd
}

func notSetUp() error {
	return fmt.Errorf("this host is not set up (%s names no role): `lockfs up TOKEN` does that", settingsFile)
}

// down unmounts and stops the daemon. It unmounts before, in one step, for programs can begin to use the mount at any time; by
// force it leaves that to the daemon, which sees to those that use it.
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
	// Though it does not run, it may be about to start with the host.
	if err := service.stop(ctx, force); err != nil {
		return err
	}
	if running {
		r.did("daemon", "stopped")
	}
	return h.unmount(r, true) // what is left of it
}

// unmount takes the mount away, if it is there; a lazy one also from programs that use it.
func (h *host) unmount(r *report, lazy bool) error {
	mounted, err := h.mounted()
	if err != nil || !mounted {
		return err
	}
	err = mountpoint.Detach(h.mount, lazy)
	for err == nil && lazy && mounted { // a dead mount may be below it
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

// mounted reports whether lockfs is mounted, dead or alive.
func (h *host) mounted() (bool, error) {
	mounts, err := mountpoint.All()
	return slices.Contains(mounts, h.mount), err
}

// inUseError says who keeps a mount from being taken away.
type inUseError struct {
	dir   string
	users []mountpoint.User
}

// Error names them, or as many as one can read.
func (e *inUseError) Error() string {
	if len(e.users) == 0 {
		return fmt.Sprintf("%s is in use: something may be mounted below it; --force takes it away all the same", e.dir)
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
	return fmt.Sprintf("%s is in use; end these programs, or take it away from them with --force:%s", e.dir, &b)
}

// describe says which host of a cluster this is.
func (h *host) describe() string {
	if h.name == "" {
		return "this " + h.role.String()
	}
	return fmt.Sprintf("%s, a %s", h.name, h.role)
}
