package daemon

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockfs/fusefs"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/version"
)

func takesOverCommand() *cobra.Command {
	var runsAt uint32
	cmd := &cobra.Command{
		Use:    takesOver + " -- COMMAND...",
		Short:  "Report whether this program can take over a mount; called by the mount's process",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := understands(cmd.Root(), args); err != nil {
				return err
			}
			if err := namespace.CheckVersion(runsAt, version.Own()); err != nil {
				return err
			}
			offer, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return err
			}
			return fusefs.Fits(offer)
		},
	}
	cmd.Flags().Uint32Var(&runsAt, runsAtFlag, version.Oldest, "the version of the cluster")
	return cmd
}

// understands reports whether this program accepts the command line of an earlier program.
func understands(root *cobra.Command, line []string) error {
	if name := filepath.Base(line[0]); name == MountHelper || name == MountHelperOfFuse {
		root = MountHelperCommand()
	}
	command, rest, err := root.Find(line[1:])
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if err == nil {
		err = command.ValidateArgs(command.Flags().Args())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(line, " "), err)
	}
	return nil
}
