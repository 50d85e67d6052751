// Package admin has the commands that ask a cluster, or a mount of it: for its members, mounts, hosts, rules, locks and events, for
// who is let in (tokens, authorities, admitted hosts); and what removes a lock whoever holds it.
package admin

import (
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// Commands are all of them.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		statusCommand(), memberCommand(), sessionCommand(), hostCommand(), cli.OnMount(locksCommand()), ruleCommand(), eventsCommand(), topCommand(),
		cli.OnMount(rmCommand()), cli.OnMount(whyCommand()),
		tokenCommand(), caCommand(), quotaCommand(), alarmCommand(), backupCommand(),
	}
}
