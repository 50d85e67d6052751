package daemon

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"lockfs/cluster/consensus"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/ids"
)

// inspected is the output of `lockfs server inspect --json`.
type inspected struct {
	ID       string             `json:"id"`
	Node     string             `json:"node"`
	First    uint64             `json:"first"` // 0: the log is empty
	Last     uint64             `json:"last"`
	LastTerm uint64             `json:"last_term"`
	Unread   string             `json:"unread,omitempty"` // position of an incomplete batch after the last entry, if any
	Snapshot *inspectedSnapshot `json:"snapshot"`
}

type inspectedSnapshot struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
}

func inspectCommand() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect --data DIR [INDEX]",
		Short: "Show the log of a server",
		Long: `Show the raft log of a server, or one entry of it with its caller. A server that
cannot apply an entry prints the index when it stops. The command changes
nothing, and the server may be running. The batch that the server is writing is
not shown.`,
		Example: `  lockfs server inspect --data /var/lib/lockfs
  lockfs server inspect --data /var/lib/lockfs 4711 --json | jq .command.operation`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return errors.New("give the data directory of a server with --data")
			}
			found, err := consensus.Inspect(dir)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return printInspected(cmd.OutOrStdout(), found, asJSON)
			}
			index, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%s is not the index of an entry: give a number", cli.Word(args[0]))
			}
			entry, err := found.Entry(ids.Index(index))
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), describeEntry(entry))
			}
			return printEntry(cmd.OutOrStdout(), entry)
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data directory (required)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printInspected(w io.Writer, found *consensus.Inspection, asJSON bool) error {
	if asJSON {
		shown := inspected{
			ID: found.ID, Node: found.Node, First: uint64(found.First), Last: uint64(found.Last), LastTerm: uint64(found.LastTerm), Unread: found.Unread,
		}
		if s := found.Snapshot; s != nil {
			shown.Snapshot = &inspectedSnapshot{uint64(s.Index), uint64(s.Term)}
		}
		return cli.PrintJSON(w, shown)
	}
	log, snapshot := "empty", "none"
	if found.Last != 0 {
		log = fmt.Sprintf("entries %d to %d, the last of term %d", found.First, found.Last, found.LastTerm)
	}
	if found.Unread != "" {
		log += fmt.Sprintf("; %s is an incomplete batch: it is being written, was interrupted, or is damaged", found.Unread)
	}
	if s := found.Snapshot; s != nil {
		snapshot = fmt.Sprintf("everything up to entry %d, of term %d", s.Index, s.Term)
	}
	_, err := fmt.Fprintf(w, "node      %s\nlog       %s\nsnapshot  %s\n", cli.Text(found.Node), log, snapshot)
	return err
}
