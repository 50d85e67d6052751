// Package admin has the commands for a cluster or a mount: members, mounts, hosts, rules, locks, events and
// quotas, and security (tokens, CAs, enrolled hosts). `lockfs rm` removes locks, with --force also held ones.
package admin

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// Commands returns all commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		statusCommand(), memberCommand(), sessionCommand(), hostCommand(), cli.OnMount(locksCommand()), ruleCommand(), eventsCommand(), topCommand(),
		cli.OnMount(rmCommand()), cli.OnMount(whyCommand()),
		tokenCommand(), caCommand(), quotaCommand(), alarmCommand(), backupCommand(),
	}
}
