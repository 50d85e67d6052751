package admin

import (
	"fmt"
	"io"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
	"strings"
	"text/tabwriter"
)

func printLocks(w io.Writer, locks []lockjson.Lock) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PATH\tSTATE\tFORMAT\tHOLDER\tTOKEN\tAGE")
	for _, l := range locks {
		path := cli.Word(l.Path)
		if l.Path == "" {
			path = "(removed)"
		}
		if l.State == "" { // this user may stat but not read the lock
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t%.0fs\n", path, l.Age)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%.0fs\n", path, l.State, l.Format, lockHolder(l), l.Token, l.Age)
		for _, a := range l.Advisory {
			bytes := ""
			if a.Kind == "fcntl" {
				bytes = fmt.Sprintf(" of bytes %d to %d", a.Start, a.End)
			}
			fmt.Fprintf(table, "  %s %s%s\t%s\t\tpid %d on %s\t\t%.0fs\n", a.Type, a.Kind, bytes, a.State, a.PID, cli.Word(a.Host), a.Age)
		}
	}
	return table.Flush()
}

func lockHolder(l lockjson.Lock) string {
	var parts []string
	if l.Holder != "" {
		parts = append(parts, cli.Word(l.Holder))
	}
	if l.Host != "" {
		parts = append(parts, "on "+cli.Word(l.Host))
	}
	return strings.Join(parts, " ")
}
