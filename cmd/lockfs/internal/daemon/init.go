package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
)

// exitInCluster is the exit code of `lockfs server init` for a directory of a cluster.
const exitInCluster = 3

// initialized is the output of `lockfs server init --json`.
type initialized struct {
	Cluster  string `json:"cluster"` // ID
	Node     string `json:"node"`
	Data     string `json:"data"`
	Address  string `json:"address"` // for other hosts
	Insecure bool   `json:"insecure"`
}

func initCommand() *cobra.Command {
	var config cluster.Config
	asJSON := false
	cmd := &cobra.Command{
		Use:   "init --data DIR",
		Short: "Bootstrap a new cluster in a data directory",
		Long: `Bootstrap a new cluster: create the data directory of its first server, which
must be empty or missing. Then start the server with the same --name, --data and
--addr (or --advertise). lockfs up --bootstrap does all of this.

Run this once for each cluster, by hand. Never put it into a unit, a boot script
or an entrypoint: on a lost disk it would create a second cluster beside the
first, and two hosts could hold one lock. A server that has lost its disk joins
its cluster with a token. If the command is interrupted, run it again.

The exit code is 0 when the directory is complete, 3 if it already belongs to a
cluster, and 1 after any other error.`,
		Example: `  lockfs server init --data /var/lib/lockfs --addr 10.0.0.1:7420
  lockfs server --data /var/lib/lockfs --addr 10.0.0.1:7420 --mount /locks`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config.Name == "" {
				if config.Name, err = cli.HostName(); err != nil {
					return err
				}
			}
			config.Logger = slog.New(slog.DiscardHandler)
			made := initialized{Node: config.Name, Data: config.DataDir, Address: config.Advertise, Insecure: config.Insecure}
			if made.Address == "" {
				made.Address = config.Address
			}
			made.Cluster, err = cluster.Bootstrap(config)
			if in := new(cluster.InClusterError); errors.As(err, &in) {
				return cli.Exit(exitInCluster, err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), made)
			}
			return made.print(cmd.OutOrStdout(), config.Address)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Name, "name", "", "name of the server (default: the host name)")
	flags.StringVar(&config.DataDir, "data", "", "data directory (required)")
	flags.StringVar(&config.Address, "addr", cli.DefaultAddress, "listen address of the server")
	flags.StringVar(&config.Advertise, "advertise", "", "address for the others, if it differs; needed for --addr 0.0.0.0:7420")
	flags.BoolVar(&config.Insecure, "insecure", false, insecureUsage)
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// print prints the next steps.
func (i *initialized) print(w io.Writer, listens string) error {
	more := ""
	if i.Address != listens {
		more += " --advertise " + cli.Text(i.Address)
	}
	joins := "Further hosts join with tokens of this server: lockfs token create --role server, or client."
	if i.Insecure {
		more += " --insecure"
		joins = "Further servers join with --join " + cli.Text(i.Address) + " --insecure."
	}
	_, err := fmt.Fprintf(w, `cluster %s is made, and %s is its first server. Start it, now and at each boot:

    lockfs server --name %[2]s --data %s --addr %s%s --mount /locks

%s
Do not run this again: a server that has lost its disk joins like a new one.
`, i.Cluster, cli.Text(i.Node), cli.Text(i.Data), cli.Text(listens), more, joins)
	return err
}
