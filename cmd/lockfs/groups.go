package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// groups order the commands in the help of lockfs: the most used ones come first. The help only names the
// commands in also.
var groups = []struct {
	title          string
	commands, also []string
}{
	{"Start", []string{"dev", "up", "down", "leave", "mount", "server"}, nil},
	{"Use", []string{"run", "wait", "why", "rm", "locks"}, nil},
	{"Inspect", []string{"status", "doctor", "events", "top", "ui"}, []string{"audit", "debug", "bench"}},
	{"Operate", []string{"host", "member", "token", "rule", "quota", "backup", "restore"}, []string{"alarm", "session", "ca"}},
	{"Protocols", nil, []string{"semaphore", "swarm", "beads", "tower", "forrst"}},
	{"More", nil, []string{"help", "docs", "completion", "version"}},
}

// order puts the commands of lockfs in the order of groups.
func order(root *cobra.Command) {
	cobra.EnableCommandSorting = false
	for _, g := range groups {
		for _, name := range slices.Concat(g.commands, g.also) {
			for _, cmd := range root.Commands() {
				if cmd.Name() == name {
					root.RemoveCommand(cmd)
					root.AddCommand(cmd)
				}
			}
		}
	}
}

// overview returns the commands of lockfs by group, and how to find more.
func overview(root *cobra.Command) string {
	var b strings.Builder
	for _, g := range groups {
		if len(g.commands) == 0 {
			fmt.Fprintf(&b, "%-11s %s\n", g.title+":", strings.Join(g.also, ", "))
			continue
		}
		b.WriteString(g.title + ":\n")
		for _, name := range g.commands {
			cmd, _, err := root.Find([]string{name})
			if err != nil {
				panic(err) // the groups have commands of this program only
			}
			fmt.Fprintf(&b, "  %-9s %s\n", name, cmd.Short)
		}
		if len(g.also) > 0 {
			fmt.Fprintf(&b, "  %-9s %s\n", "also:", strings.Join(g.also, ", "))
		}
	}
	b.WriteString("\n`lockfs COMMAND --help` explains a command, `lockfs help` lists the manual.")
	return b.String()
}
