package protocol

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

func towerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tower",
		Short: "Take, renew and release locks of tower-fleet, in any directory",
		Long: `Speak the tower-fleet lock protocol, version 1, in any directory: on a mount of lockfs or on a local disk. NAME.lock
in --dir is the lock NAME, a JSON file that its holder renews by heartbeats. It is stale when the last heartbeat is
longer ago than its ttl, and only then it can be stolen, with --force-lock.

In one directory of one host these commands exclude each other: nobody sees half a lock, and a lock that is renewed,
released or stolen is the one that was looked at. Only a mount of lockfs guarantees also

  - that this holds for all hosts
  - that scripts that use rm and mv on the same locks remove nothing but what they looked at
  - that nobody replaces a live lock of another host, however wrong its clock is: stale is what the cluster's clock says
  - a fencing token, larger for each new holder: ` + "`lockfs tower run`" + ` hands it to its command as LOCKFS_TOKEN

NAME has 1 to 128 of a-z, 0-9, - and _, and - and _ neither first nor last. It may contain ${params.x}, which stands
for the value of --param x=VALUE. A request id is anything unique, without line breaks and other control characters.`,
		Example: `  export TOWER_LOCK_DIR=/locks/tower
  lockfs tower run 'deploy-${params.app}' --param app=shop --intent deploy --intent-version 1.2.0 -- ./deploy.sh
  lockfs tower list`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(TowerEnvironment(cmd)) },
	}
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cli.Parent(cmd, cli.Exits(requireMounted(towerAcquireCommand())), cli.Exits(towerReleaseCommand()), cli.Exits(towerHeartbeatCommand()),
		cli.Exits(towerCheckCommand()), cli.Exits(towerListCommand()), cli.Exits(requireMounted(towerRunCommand()))))
}
