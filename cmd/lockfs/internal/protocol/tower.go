package protocol

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

func towerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tower",
		Short: "Acquire, renew, check or release tower-fleet locks",
		Long: `Use the tower-fleet lock protocol, version 1, in any directory. The lock NAME is
the file NAME.lock in --dir: a JSON file that its holder renews by heartbeats. It
is stale when its last heartbeat is older than its ttl. Only then --force-lock
steals it.

In one directory of one host these commands exclude each other: no reader sees
half a lock, and each command acts on the lock that it has judged. Only a mount
of lockfs also guarantees

  - the same for all hosts
  - that scripts with rm and mv remove only the lock that they looked at
  - that no host replaces a live lock of another host, even if its clock is
    wrong: the cluster's clock decides
  - a fencing token, larger for each new holder: ` + "`lockfs tower run`" + ` passes it
    to its command as LOCKFS_TOKEN

NAME has 1 to 128 of a-z, 0-9, - and _, with - and _ neither first nor last. It
may contain ${params.x}, the value of --param x=VALUE. A request id is any unique
text without line breaks and other control characters.`,
		Example: `  export TOWER_LOCK_DIR=/locks/tower
  lockfs tower run 'deploy-${params.app}' --param app=shop --intent deploy --intent-version 1.2.0 -- ./deploy.sh
  lockfs tower list`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(TowerEnvironment(cmd)) },
	}
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cli.Parent(cmd, cli.Exits(requireMounted(towerAcquireCommand())), cli.Exits(towerReleaseCommand()), cli.Exits(towerHeartbeatCommand()),
		cli.Exits(towerCheckCommand()), cli.Exits(towerListCommand()), cli.Exits(requireMounted(towerRunCommand()))))
}
