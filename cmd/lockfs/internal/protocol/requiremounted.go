package protocol

import (
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/formats/swarm"
)

// requireMounted has a command fail before it does anything if its lock is below a mount point where lockfs should be mounted and is not.
// To find out it opens the directory. So the time limit of a command on a hung mount begins here.
func requireMounted(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit := waitLimit(cmd); limit > 0 {
			worker.Current().Waits(limit, cli.ExitTimedOut)
		}
		if err := mountpoints.Require(placeOf(cmd, args)); err != nil {
			a := new(answer)
			a.asJSON, _ = cmd.Flags().GetBool("json")
			return a.end(cmd.OutOrStdout(), cli.Failed(err))
		}
		return run(cmd, args)
	}
	return cmd
}

// waitLimit returns for how long a command may wait for a lock; 0: it does not wait, or for ever.
func waitLimit(cmd *cobra.Command) time.Duration {
	for _, name := range []string{"wait", "timeout"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			limit, _ := time.ParseDuration(flag.Value.String())
			return limit
		}
	}
	return 0
}

// placeOf returns a path that the lock of a command is at or below.
func placeOf(cmd *cobra.Command, args []string) string {
	if flag := cmd.Flags().Lookup("dir"); flag != nil {
		return flag.Value.String()
	}
	if cmd.HasParent() && (cmd.Parent().Name() == "swarm" || cmd.Parent().Name() == SwarmScript) {
		return string(swarm.DefaultDir())
	}
	return args[0]
}
