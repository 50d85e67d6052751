package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster/backup"
	"lockfs/cluster/consensus"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// restored is what `lockfs restore --json` prints.
type restored struct {
	Backup *backup.Header `json:"backup"`
	Data   string         `json:"data"`
	Index  uint64         `json:"index"` // from which tokens go on
}

func restoreCommand() *cobra.Command {
	var dir string
	var asJSON bool
	var claim consensus.Claim
	cmd := &cobra.Command{
		Use:   "restore FILE|- --data DIR --name NAME",
		Short: "Make the data directory of a new cluster from a backup",
		Long: `Make the data directory of a new cluster of one server from a backup. The directory must be empty, or not there yet. Start the
server then with the same --name, --data and --addr (or --advertise); others join it with empty directories.

What the cluster did after the backup is lost, and who got a lock then still believes to have it: end the programs that use
locks first. Fencing tokens, inode and event numbers go on above all that were ever given out. ` + "`lockfs help backup`" + ` tells what
becomes of which lock.`,
		Example: `  lockfs restore locks.backup --data /var/lib/lockfs --name a --addr 10.0.0.1:7420
  lockfs server --name a --data /var/lib/lockfs --mount /locks --addr 10.0.0.1:7420 --insecure`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" || claim.Name == "" {
				return errors.New("--data and --name are needed: those of the server that is to run")
			}
			header, state, err := readBackup(args[0], cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if err := state.BeginAnew(time.Now()); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if err := consensus.Found(dir, claim, state, ids.Term(header.Term), slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), restored{header, dir, uint64(state.Index())})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s holds all up to index %d, cluster time %s, and goes on from %d; start the server with --name %s\n",
				cli.Text(dir), header.Index, header.ClusterTime.Format(time.RFC3339), state.Index(), claim.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data directory to make (required)")
	cmd.Flags().StringVar(&claim.Name, "name", "", "name of its server (required)")
	cmd.Flags().StringVar(&claim.Address, "addr", cli.DefaultAddress,
		"where others reach its server: its --advertise, or --addr; empty for a directory of lockfs dev, whose name is dev")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func readBackup(path string, input io.Reader) (*backup.Header, *namespace.Namespace, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = file.Close() }()
		input = file
	}
	return backup.Read(input)
}
