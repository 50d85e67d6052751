package admin

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// alarm is an element of the output of `lockfs alarm list --json`.
type alarm struct {
	Number uint64    `json:"number"`
	Kind   string    `json:"kind"`             // state_differs, state_undecided, two_processes, two_hosts, no_space
	Member string    `json:"member,omitempty"` // the member with the fault
	Since  time.Time `json:"since"`            // cluster time
	Text   string    `json:"text"`
}

func alarmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alarm",
		Short: "List or clear alarms",
		Long: `An alarm stays until you clear it; no_space also clears itself. Alarms also
appear in /healthz and in the metrics.

  state_differs    the state of a member differed from the quorum's; the member
                   is out of service and does not start again with its data
  state_undecided  the states of the members differed without a quorum
  two_processes    two processes use the identity of one server, one of them on a
                   copy of its data or machine; the text names both
  two_hosts        two machines mount under one name; the text names both
                   addresses
  no_space         the disk of a member has less than --min-free; lockfs only
                   removes, releases and renews. The alarm clears itself when
                   free space is a quarter above the limit`,
	}
	return cli.Parent(cmd, alarmListCommand(), alarmClearCommand())
}

func alarmListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the alarms not yet cleared",
		Example: "  lockfs alarm list --servers 10.0.0.1:7421",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAlarms{ListAlarms: &storepb.ListAlarms{}}})
				if err != nil {
					return err
				}
				alarms := make([]alarm, len(result.GetAlarms()))
				for i, a := range result.GetAlarms() {
					alarms[i] = alarm{a.GetNumber(), a.GetKind(), a.GetName(), time.Unix(0, a.GetSince()).UTC(), a.GetText()}
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), alarms)
				}
				return printAlarms(cmd.OutOrStdout(), alarms)
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func alarmClearCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "clear NUMBER",
		Short: "Clear an alarm",
		Long: `Clear an alarm by the number that lockfs alarm list prints. Clearing does not
repair the cause: a member whose state differed stays out of service.`,
		Example: "  lockfs alarm clear 4711",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%s is not the number of an alarm; see `lockfs alarm list`", cli.Word(args[0]))
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				op := &storepb.Op_ClearAlarm{ClearAlarm: &storepb.ClearAlarm{Number: number}}
				if err := change(ctx, admin, &storepb.Op{Op: op}); err != nil {
					return fmt.Errorf("clear alarm %d: %w", number, err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]uint64{"cleared": number})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "cleared %d\n", number)
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func printAlarms(w io.Writer, alarms []alarm) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "NUMBER\tKIND\tMEMBER\tSINCE\tTEXT")
	for _, a := range alarms {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", a.Number, a.Kind, orDash(a.Member), a.Since.Format(time.RFC3339), a.Text)
	}
	return table.Flush()
}
