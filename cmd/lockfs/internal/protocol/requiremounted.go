package protocol

import (
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
	"lockfs/cmd/lockfs/internal/mountpoints"
	"lockfs/formats/swarm"
)

// requireMounted makes a command fail at once if lockfs should be mounted above its lock and is not. The
// check opens the directory. On a hanging mount this may block, so the time limit of the command begins here.
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

// waitLimit returns how long a command may wait for a lock; 0: it does not wait, or waits without limit.
func waitLimit(cmd *cobra.Command) time.Duration {
	for _, name := range []string{"wait", "timeout"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			limit, _ := time.ParseDuration(flag.Value.String())
			return limit
		}
	}
	return 0
}

// placeOf returns the path of a command's lock, or of a directory above it.
func placeOf(cmd *cobra.Command, args []string) string {
	if flag := cmd.Flags().Lookup("dir"); flag != nil {
		return flag.Value.String()
	}
	if cmd.HasParent() && (cmd.Parent().Name() == "swarm" || cmd.Parent().Name() == SwarmScript) {
		return string(swarm.DefaultDir())
	}
	return args[0]
}
