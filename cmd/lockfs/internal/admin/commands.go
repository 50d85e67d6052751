// Package admin has the commands that ask a cluster, or a mount of it: for its members, mounts, hosts, rules, locks and events, for
// who is let in (tokens, authorities, admitted hosts); and what removes a lock whoever holds it.
package admin

import (
	"github.com/spf13/cobra"

	"lockfs/raftstore/version"
)

// Commands are all of them.
func Commands() []*cobra.Command {
	commands := []*cobra.Command{
		statusCommand(), memberCommand(), sessionCommand(), hostCommand(), locksCommand(), ruleCommand(), eventsCommand(), topCommand(), rmCommand(), whyCommand(),
		tokenCommand(), caCommand(), quotaCommand(), alarmCommand(), backupCommand(),
	}
	if version.Newest >= 2 {
		commands = append(commands, noteCommand())
	}
	return commands
}
