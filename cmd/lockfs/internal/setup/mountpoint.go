package setup

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/fusefs/mountpoint"
)

// protect prevents programs from creating files in the mount point while lockfs is not mounted. A host
// without the protection works, so an error is only printed; lockfs doctor reports it too.
func (h *host) protect(r *report) {
	bare, changed, err := mountpoints.Protect(h.mount)
	if bare != nil {
		err = errors.Join(err, mountpoints.SetUp(bare.Path))
	}
	switch {
	case err != nil:
		r.is("directory", "%s is not protected while lockfs is not mounted: %v", h.mount, err)
	case changed:
		r.did("directory", "%s is protected while lockfs is not mounted: %s", h.mount, mountpoints.Describe(bare))
	default:
		r.is("directory", "%s is protected while lockfs is not mounted: %s", h.mount, mountpoints.Describe(bare))
	}
}

// unprotect undoes protect after the unmount.
func (h *host) unprotect(r *report) error {
	changed, err := mountpoints.Unprotect(h.mount)
	if err == nil {
		err = mountpoints.TakeDown(h.mount)
	}
	if changed {
		r.did("directory", "programs can create files in %s again", h.mount)
	}
	return err
}

// MountPointCommand is for the units and scripts of packages.
func MountPointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mount-point", Short: "Protect or unprotect configured mount points; for units and packages", Hidden: true,
	}
	protect := &cobra.Command{
		Use: "protect", Short: "Protect mount points while lockfs is not mounted",
		Example: "  lockfs mount-point protect", Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			points, err := mountpoints.Configured()
			if err != nil {
				return err
			}
			for _, p := range points {
				// A mount between two processes does not respond, and the next process starts after this
				// command.
				if mounted, err := mountpoint.IsMounted(p.Dir); err == nil && !mounted {
					if _, err := os.Lstat(p.Dir); err != nil {
						continue // it may be on a disk that is not mounted yet
					}
				}
				if _, _, err := mountpoints.Protect(p.Dir); err != nil {
					cmd.PrintErrf("lockfs: %s is not protected while lockfs is not mounted: %v\n", p.Dir, err)
				}
			}
			return nil
		},
	}
	unprotect := &cobra.Command{
		Use: "unprotect", Short: "Remove the protection of mount points",
		Example: "  lockfs mount-point unprotect", Args: cli.Exactly(0, 0),
		RunE: func(*cobra.Command, []string) error { return mountpoints.UnprotectAll() },
	}
	return cli.Parent(cmd, protect, unprotect)
}
