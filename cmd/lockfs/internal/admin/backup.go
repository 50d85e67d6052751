package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster/backup"
	"lockfs/cmd/lockfs/internal/cli"
)

// standardOutput is the FILE argument for standard output.
const standardOutput = "-"

func backupCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "backup [FILE|-]",
		Short: "Write a backup of a cluster",
		Long: `Write a backup of a running cluster. The backup shows one moment and contains
every write that was acknowledged before. Run it as root on a server, or with
the identity of a server.

Without FILE, lockfs creates a new file in the working directory; - is standard
output. The file gets its name when it is complete. To restore a backup, see
lockfs help backup.`,
		Example: `  lockfs backup
  lockfs backup - | ssh elsewhere 'cat > locks.backup && lockfs backup verify locks.backup'`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, asked, err := openAdmin(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			defer admin.Close()
			progress := cli.Progress(cmd.ErrOrStderr())
			write := func(w io.Writer) error {
				err := admin.Backup(cmd.Context(), flags.Timeout, w, progress)
				if cmd.Context().Err() != nil {
					return context.Cause(cmd.Context())
				}
				return asked.Explain(err)
			}
			if len(args) == 1 && args[0] == standardOutput {
				return writeToOutput(cmd.OutOrStdout(), write, flags.JSON)
			}
			path := fmt.Sprintf("lockfs-%s.backup", time.Now().UTC().Format("20060102T150405Z"))
			if len(args) == 1 {
				path = args[0]
			}
			header, err := backup.Create(path, write)
			if err != nil {
				return err
			}
			if flags.JSON {
				return cli.PrintJSON(cmd.OutOrStdout(), described{File: path, Header: header})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: all up to index %d, cluster time %s\n", cli.Text(path), header.Index, header.ClusterTime.Format(time.RFC3339))
			return nil
		},
	}
	flags.Add(cmd.Flags())
	cmd.AddCommand(backupVerifyCommand())
	return cmd
}

func writeToOutput(out io.Writer, write func(io.Writer) error, asJSON bool) error {
	switch {
	case asJSON:
		return errors.New("--json describes a file, but the backup goes to standard output: give a file, or leave --json out")
	case cli.IsTerminal(out):
		return errors.New("a backup is binary: redirect the output, or give a file")
	}
	return write(out)
}

// described is the output of --json for a backup.
type described struct {
	File string `json:"file"`
	*backup.Header
	StateHash string         `json:"state_hash,omitempty"`
	Counts    map[string]int `json:"counts,omitempty"`
}

func backupVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE|-",
		Short: "Check a backup and show its content",
		Long: `Check a backup and show its content. The command reads the whole backup and
fails if it could not be restored. The printed state hash is the hash that the
servers had at that index (lockfs status --json). The check needs as much memory
as a server needs for this state.`,
		Example: "  lockfs backup verify locks.backup\n  lockfs backup verify locks.backup --json | jq .counts.locks",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := verify(args[0], cmd.InOrStdin(), cli.Progress(cmd.ErrOrStderr()))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), found)
			}
			return printBackup(cmd.OutOrStdout(), found)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func verify(path string, input io.Reader, progress func(done, all int64)) (*described, error) {
	if path != standardOutput {
		file, err := os.Open(filepath.Clean(path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("the file does not exist: create a backup with `lockfs backup`")
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		input = cli.ReadWithProgress(file, progress)
	}
	header, state, err := backup.Read(input)
	if err != nil {
		return nil, err
	}
	if !state.Rehash() {
		return nil, fmt.Errorf("the file is as node %s wrote it, but the state in it does not match its hash: check the memory and disk of that host, "+
			"and back up another server", cli.Text(header.Node))
	}
	return &described{File: path, Header: header, StateHash: state.Hash(), Counts: state.Counts()}, nil
}

func printBackup(w io.Writer, d *described) error {
	of := "a cluster without an ID"
	if d.Cluster != "" {
		of = "cluster " + cli.Text(d.Cluster)
	}
	_, err := fmt.Fprintf(w, "sound     version %d, of %s\nmade      %s by node %s (lockfs %s)\nstate     index %d, term %d, cluster time %s, hash %s\n",
		d.Version, of, d.Made.Format(time.RFC3339), cli.Text(d.Node), cli.Text(d.Program), d.Index, d.Term, d.ClusterTime.Format(time.RFC3339), d.StateHash)
	if err != nil {
		return err
	}
	c := d.Counts
	_, err = fmt.Fprintf(w, "holds     %d inodes with %d names, %d of them locks; %d flock and fcntl locks and requests;\n"+
		"          %d sessions of %d hosts, %d rules, %d events, %d members\n",
		c["inodes"], c["names"], c["locks"], c["advisory_locks"], c["sessions"], c["hosts"], c["rules"], c["events"], c["members"])
	return err
}
