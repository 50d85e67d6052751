package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/version"
)

// sessionRow is an element of the output of `lockfs session list --json`.
type sessionRow struct {
	ID          string    `json:"id"` // hexadecimal
	Host        string    `json:"host"`
	BootID      string    `json:"boot_id"`
	Opened      time.Time `json:"opened"`               // cluster time
	Silent      float64   `json:"silent_seconds"`       // since the last keepalive
	ClockOffset float64   `json:"clock_offset_seconds"` // positive: the host's clock is ahead of cluster time
	// Version is that of the mount's program; empty before its first keepalive to a new leader.
	Version string `json:"version"`
	// OldestVersion and NewestVersion are the cluster versions that the mount's program supports.
	OldestVersion uint32 `json:"oldest_version"`
	NewestVersion uint32 `json:"newest_version"`
}

func sessionCommand() *cobra.Command {
	return cli.Parent(&cobra.Command{Use: "session", Short: "List the sessions of mounts"}, sessionListCommand())
}

func sessionListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions with last contact, clock offset and versions",
		Long: `List the sessions of mounts. SILENT is the time since the last keepalive. CLOCK
is the offset of the host's clock from cluster time, positive if it is ahead.
PROGRAM is the version of the mount's program, VERSIONS the cluster versions that
it supports.`,
		Example: `  lockfs session list
  lockfs session list --json | jq -r '.[] | select(.silent_seconds > 10) | .host'`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				found, err := admin.Sessions(ctx)
				if err != nil {
					return err
				}
				sessions := describeSessions(found)
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), sessions)
				}
				return printSessions(cmd.OutOrStdout(), sessions)
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

func describeSessions(found []*clusterpb.Session) []sessionRow {
	sessions := make([]sessionRow, len(found))
	for i, s := range found {
		record := s.GetRecord()
		sessions[i] = sessionRow{
			ID: fmt.Sprintf("%016x", record.GetId()), Host: record.GetHost(), BootID: record.GetBootId(),
			Opened:        time.Unix(0, record.GetOpened()).UTC(),
			Silent:        time.Duration(s.GetSilent()).Seconds(),
			ClockOffset:   time.Duration(s.GetClockOffset()).Seconds(),
			Version:       s.GetProgram(),
			OldestVersion: max(record.GetOldestVersion(), 1), NewestVersion: max(record.GetNewestVersion(), 1),
		}
	}
	return sessions
}

func printSessions(w io.Writer, sessions []sessionRow) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "SESSION\tHOST\tOPENED\tSILENT\tCLOCK\tPROGRAM\tVERSIONS")
	for _, s := range sessions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%+.3fs\t%s\t%s\n", s.ID, s.Host, s.Opened.Format(time.RFC3339), seconds(s.Silent), s.ClockOffset, cli.Word(cmp.Or(s.Version, "-")),
			version.Range{Oldest: s.OldestVersion, Newest: s.NewestVersion})
	}
	return table.Flush()
}
