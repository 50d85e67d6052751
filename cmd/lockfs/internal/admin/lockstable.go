package admin

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
)

// printLocks prints a table of locks; now is the time from which the rest of a lock's time counts.
func printLocks(w io.Writer, locks []lockjson.Lock, now time.Time) error {
	if len(locks) == 0 {
		_, err := fmt.Fprintln(w, "no locks")
		return err
	}
	table := cli.NewTable(w)
	fmt.Fprintln(table, "PATH\tSTATE\tFORMAT\tHOLDER\tTOKEN\tAGE\tEXPIRES\tWAITING")
	for _, l := range locks {
		path := cli.Word(l.Path)
		if l.Path == "" {
			path = "(removed)"
		}
		if l.State == "" { // this user may stat but not read the lock
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t%s\t-\t\n", path, seconds(l.Age))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
			path, lockState(l), l.Format, lockHolder(l), l.Token, seconds(l.Age), cmp.Or(lockExpiry(l, now), "never"), lockWaiting(l))
		for _, a := range l.Advisory {
			bytes := ""
			if a.Kind == "fcntl" {
				bytes = fmt.Sprintf(" of bytes %d to %d", a.Start, a.End)
			}
			fmt.Fprintf(table, "  %s %s%s\t%s\t\tpid %d on %s\t\t%s\t\t\n", a.Type, a.Kind, bytes, a.State, a.PID, cli.Word(a.Host), seconds(a.Age))
		}
	}
	return table.Flush()
}

// lockState returns the state of a lock, with a mark if its content breaks a rule of its format; "-" if the
// user may not read the lock.
func lockState(l lockjson.Lock) string {
	if l.Invalid != "" {
		return l.State + ", invalid"
	}
	return cmp.Or(l.State, "-")
}

// lockExpiry returns when a lock expires, or "" for a lock without a time.
func lockExpiry(l lockjson.Lock, now time.Time) string {
	if l.Expires == nil {
		return ""
	}
	if left := l.Expires.Sub(now); left > 0 {
		return "in " + lockjson.Duration(left)
	}
	return "over"
}

// lockWaiting returns the number of waiting requests, or "" for none.
func lockWaiting(l lockjson.Lock) string {
	if l.Waiting == 0 {
		return ""
	}
	return fmt.Sprint(l.Waiting)
}

// seconds formats a number of seconds like all durations.
func seconds(s float64) string { return lockjson.Duration(time.Duration(s * float64(time.Second))) }

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
