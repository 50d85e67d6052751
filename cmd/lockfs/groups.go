package main

import "github.com/spf13/cobra"

// groups order the commands in the help of lockfs: the most used ones come first.
var groups = []struct {
	title    string
	commands []string
}{
	{"Start", []string{"up", "down", "leave", "dev", "mount", "server"}},
	{"Use", []string{"run", "wait", "why", "rm", "locks"}},
	{"Inspect", []string{"status", "events", "top", "ui", "doctor", "audit", "debug", "bench"}},
	{"Operate", []string{"member", "host", "session", "token", "ca", "rule", "quota", "alarm", "backup", "restore"}},
	{"Protocols", []string{"semaphore", "swarm", "beads", "tower", "forrst"}},
	{"Help", []string{"help", "docs", "completion", "version"}},
}

// group puts the commands of lockfs in the order of groups.
func group(root *cobra.Command) {
	cobra.EnableCommandSorting = false
	root.SetHelpCommandGroupID("Help")
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, name := range g.commands {
			for _, cmd := range root.Commands() {
				if cmd.Name() == name {
					root.RemoveCommand(cmd)
					cmd.GroupID = g.title
					root.AddCommand(cmd)
				}
			}
		}
	}
}
