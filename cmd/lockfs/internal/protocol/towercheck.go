package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/tower"
)

func towerCheckCommand() *cobra.Command {
	var (
		flags  towerFlags
		answer answer
	)
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Report whether a lock is stale, active or free",
		Long: `Report whether a lock is stale, active or free, and its holder. The first line
is that word alone. A file that is not a valid lock is invalid; it blocks like
an active lock.

` + jsonHelp + `

Exit codes, of which the specification fixes the first two (section 6.2):

  0      stale
  1      active
  2      free
  3      invalid
` + cli.ExitRows([]int{cli.ExitFailed, cli.ExitSignal}),
		Example: `  lockfs tower check money-tracker-production
  lockfs tower check money-tracker-production --json | jq -r .holder`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir, name, err := flags.openFor(args[0])
			if err != nil {
				return err
			}
			status, err := dir.Check(name)
			if err != nil {
				return missingDir(err)
			}
			answer.look = lookAtTower(dir, name)
			if !answer.asJSON {
				if err := printTower(cmd.OutOrStdout(), status); err != nil {
					return err
				}
			}
			return exitOfState(status.State)
		}),
	}
	answer.add(cmd.Flags())
	flags.add(cmd.Flags(), true)
	return cmd
}

func exitOfState(state tower.State) error {
	switch state {
	case tower.Stale:
		return nil
	case tower.Active:
		return &cli.ExitStatus{Code: cli.ExitActive}
	case tower.Free:
		return &cli.ExitStatus{Code: cli.ExitFree}
	}
	return &cli.ExitStatus{Code: cli.ExitInvalid}
}

func missingDir(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; the first lock makes the directory, or give another with --dir or %s", err, TowerDirVariable)
	}
	return err
}

func towerListCommand() *cobra.Command {
	var (
		flags  towerFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the locks of a directory",
		Long: `List the locks of a directory with their holders. Files that are not valid locks
are listed as invalid.

` + cli.ExitHelp(),
		Example: "  lockfs tower list --dir /locks/tower\n  lockfs tower list --json | jq -r '.[] | select(.state == \"stale\") | .lock_name'",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := flags.open()
			if err != nil {
				return err
			}
			found, err := dir.List()
			if err != nil {
				return missingDir(err)
			}
			if asJSON {
				locks := make([]any, len(found))
				for i, status := range found {
					if locks[i], err = merged(lookAtTower(dir, status.LockName)()); err != nil {
						return err
					}
				}
				return cli.PrintJSON(cmd.OutOrStdout(), locks)
			}
			return printTowers(cmd.OutOrStdout(), found)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags.add(cmd.Flags(), false)
	return cmd
}

func printTowers(w io.Writer, locks []tower.Status) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "NAME\tSTATE\tREQUEST\tACTOR\tINTENT\tHOST\tHEARTBEAT\tTTL")
	for _, s := range locks {
		l := s.Lock
		if l == nil {
			fmt.Fprintf(table, "%s\t%s\t%s\n", cli.Word(s.LockName), s.State, cli.Text(s.Problem))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.LockName, s.State, cli.Word(l.RequestID), cli.Word(l.Actor),
			cli.Word(l.Intent), cli.Word(l.HostID), seconds(*s.AgeSeconds), seconds(l.TTLSeconds))
	}
	return table.Flush()
}

// seconds formats a number of seconds like all durations.
func seconds(s int64) string { return cli.Duration(time.Duration(s) * time.Second) }

func printTower(w io.Writer, s tower.Status) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, s.State)
	if s.Problem != "" {
		fmt.Fprintf(table, "file\t%s\nproblem\t%s\n", cli.Text(s.LockPath), cli.Text(s.Problem))
	}
	if s.Warning != "" {
		fmt.Fprintf(table, "warning\t%s\n", s.Warning)
	}
	if l := s.Lock; l != nil {
		fmt.Fprintf(table, "request_id\t%s\nactor\t%s\nintent\t%s %s\n", cli.Text(l.RequestID), cli.Text(l.Actor), cli.Text(l.Intent), cli.Text(l.IntentVersion))
		fmt.Fprintf(table, "host_id\t%s\npid\t%d\n", cli.Text(l.HostID), l.PID)
		fmt.Fprintf(table, "created_at\t%s\nlast_heartbeat_at\t%s (%s ago)\n", l.CreatedAt.Format(time.RFC3339),
			l.LastHeartbeatAt.Format(time.RFC3339), seconds(*s.AgeSeconds))
		fmt.Fprintf(table, "ttl_seconds\t%d (stale after %s)\nmetadata\t%s\n", l.TTLSeconds, l.StaleSince().Format(time.RFC3339), oneLine(l.Metadata))
	}
	if s.Token != 0 {
		fmt.Fprintf(table, "token\t%d\n", s.Token)
	}
	return table.Flush()
}

func oneLine(object json.RawMessage) string {
	var line bytes.Buffer
	if err := json.Compact(&line, object); err != nil {
		return "" // there is none
	}
	return cli.Text(line.String())
}
