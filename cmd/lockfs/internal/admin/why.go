package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/lockjson"
)

func whyCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "why PATH",
		Short: "Explain a lock: its holder, and why it is or is not stale",
		Long: `Explain a lock: why the name is a lock, its holder, why it is or is not stale,
which programs may remove it, and the waiters. PATH is a path on a mount, or a
path from the root of the only mount of this host. You see files that you may
read, as with .lockfs/why/PATH below the mount.`,
		Example: `  lockfs why /locks/deploy.lock
  lockfs why deploy.lock --json | jq -r .holder`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, below := fromRoot(args[0])
			if root == "" {
				var err error
				if root, err = onlyMount(); err != nil {
					return fmt.Errorf("%s is not on a lockfs mount, and %w", cli.Word(args[0]), err)
				}
			}
			if below == "" || below == "." {
				return fmt.Errorf("%s is the root of a mount, not a lock; see `lockfs locks`", cli.Word(args[0]))
			}
			text, err := os.ReadFile(filepath.Join(root, controlDir, "why", below))
			if errors.Is(err, syscall.EISDIR) { // a directory with entries
				text, err = os.ReadFile(filepath.Join(root, controlDir, "why", below, controlDir))
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%s does not exist on the mount at %s; see `lockfs locks`", cli.Word(below), cli.Word(root))
			case err != nil:
				return err
			case !asJSON:
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			locks, err := locksOn(root, below)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(locks, func(l lockjson.Lock) bool { return l.Path == below })
			if at < 0 {
				return fmt.Errorf("%s is not in the list of locks; see `lockfs why %[1]s` without --json, and `lockfs locks`", cli.Word(args[0]))
			}
			return cli.PrintJSON(cmd.OutOrStdout(), locks[at])
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, like lockfs locks")
	return cmd
}

// onlyMount returns the only mount of this host.
func onlyMount() (string, error) {
	points, err := mountpoint.All()
	switch {
	case err != nil:
		return "", err
	case len(points) == 0:
		return "", errors.New("this host has no mount: mount with `lockfs up`, or see `lockfs locks`")
	case len(points) > 1:
		return "", fmt.Errorf("this host has several mounts: %s; give a full path, as in `lockfs why %s`",
			cli.Text(strings.Join(points, ", ")), cli.ShellWord(filepath.Join(points[0], "deploy.lock")))
	}
	return mountRoot(points[0])
}
