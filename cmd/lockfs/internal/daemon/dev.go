package daemon

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs"
)

func devCommand() *cobra.Command {
	var (
		data    string
		timeout time.Duration
		limits  fusefs.Limits
		forrst  forrstEndpoint
		logs    cli.LogFlags
	)
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Run a single server and mount it, without configuration",
		Long: `Run a cluster of one server in this process and mount it at DIR (default
./locks), which is created if it is missing. Ctrl-C unmounts it. The locks stay
on disk for the next start.

Root needs nothing else. Other users need fusermount3 (Debian: apt install
fuse3).`,
		Example: `  lockfs dev
  lockfs dev /tmp/locks
  lockfs dev --forrst-addr 127.0.0.1:7423 --forrst-upstream http://127.0.0.1:9000/rpc`,
		Args: cli.Exactly(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "locks"
			if len(args) == 1 {
				dir = args[0]
			}
			if data == "" {
				data = dir + ".data"
			}
			logger, err := logs.Logger()
			if err != nil {
				return err
			}
			path, err := absolute(dir)
			if err != nil {
				return err
			}
			host, err := cli.HostName()
			if err != nil {
				return err
			}
			s := &service{
				hostName: host,
				config: cluster.Config{
					Name: "dev", DataDir: data, Bootstrap: true, Leases: true, Logger: logger,
				},
				opTimeout: timeout,
				limits:    limits,
				forrst:    forrst,
				mountDir:  path,
				socket:    cli.DevSocket(path),
			}
			begun := sync.OnceFunc(cli.Waiting(cmd.ErrOrStderr(), "starting with the data in %s", cli.Text(data)))
			defer begun()
			s.ready = func() {
				begun()
				reportDev(cmd.OutOrStdout(), dir)
			}
			return s.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data directory (default DIR.data)")
	forrst.add(cmd.Flags())
	cli.AddOpTimeout(cmd.Flags(), &timeout)
	addLimits(cmd.Flags(), &limits)
	logs.Add(cmd.Flags(), "warn")
	cli.Often(cmd.Flags(), "data")
	return cmd
}

// reportDev prints the first commands to try with locks.
func reportDev(w io.Writer, dir string) {
	reportReady(w, dir)
	lock := filepath.Join(dir, "try.lock")
	if strings.ContainsAny(dir, " '\"$`\\") {
		lock = "'" + strings.ReplaceAll(lock, "'", `'\''`) + "'"
	}
	fmt.Fprintf(w, `  try, in another shell:
    (set -C; echo $$ > %[1]s)    # and again, which fails
    lockfs why %[1]s
    rm %[1]s
`, lock)
}
