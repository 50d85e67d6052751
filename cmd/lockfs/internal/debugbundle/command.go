// Package debugbundle has the command to collect the data for a diagnosis of a cluster, without keys, tokens
// or contents of locks. It copies known harmless data (files by name, fields of events by name), and redacts
// all text ([redact]).
package debugbundle

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// Command returns lockfs debug.
func Command() *cobra.Command {
	return cli.Parent(&cobra.Command{Use: "debug", Short: "Collect data for troubleshooting"}, bundleCommand())
}

func bundleCommand() *cobra.Command {
	var flags cli.ClusterFlags
	plan := new(plan)
	cmd := &cobra.Command{
		Use:   "bundle [FILE|-]",
		Short: "Collect status, logs, metrics and profiles in an archive",
		Long: `Collect in a tar.gz: the status of servers, members, mounts, hosts, rules,
alarms and quotas; the output of lockfs doctor; the last events; versions,
kernel and FUSE mounts; and of each daemon on this host its metrics, goroutines,
heap and CPU profiles, sizes of data files, and log (from the journal).
missing.txt lists the parts that could not be collected.

The archive has no keys, no tokens, no contents of lock files and no holders
from such contents. It has paths of locks, names and addresses of hosts, and
user ids. Read it before you pass it on.

Run the command as root: only root and the daemon's user can read its profiles
and log. The default FILE is lockfs-debug-HOST-TIME.tar.gz in this directory; -
is standard output.`,
		Example: `  lockfs debug bundle
  lockfs debug bundle - | ssh desk 'cat > bundle.tar.gz'`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := cli.HostName()
			if err != nil {
				return err
			}
			plan.name = fmt.Sprintf("lockfs-debug-%s-%s", strings.ReplaceAll(host, "/", "_"), time.Now().UTC().Format("20060102T150405Z"))
			plan.ask = cli.PassedOn(cmd, "json", "cpu", "data")
			file := plan.name + ".tar.gz"
			if len(args) == 1 {
				file = args[0]
			}
			if file == "-" {
				_, err := plan.write(cmd.Context(), cmd.OutOrStdout())
				return err
			}
			missing, err := plan.writeFile(cmd.Context(), file)
			if err != nil {
				return err
			}
			if flags.JSON {
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"file": file, "missing": missing})
			}
			for _, what := range missing {
				fmt.Fprintf(cmd.ErrOrStderr(), "lockfs: missing: %s\n", what)
			}
			fmt.Fprintln(cmd.OutOrStdout(), file)
			return nil
		},
	}
	flags.Add(cmd.Flags())
	cmd.Flags().DurationVar(&plan.cpu, "cpu", 5*time.Second, "duration of the CPU profiles; 0: none")
	cmd.Flags().StringSliceVar(&plan.data, "data", nil, "further data directories, to list their file sizes")
	return cmd
}

// writeFile writes a private file, and leaves no partial one behind.
func (p *plan) writeFile(ctx context.Context, path string) (missing []string, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	missing, err = p.write(ctx, file)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return missing, err
}

// write collects all parts and writes the archive.
func (p *plan) write(ctx context.Context, w io.Writer) (missing []string, err error) {
	c := &collection{name: p.name, made: time.Now()}
	p.collect(ctx, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.missing, c.write(w)
}
