package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

// traceFile is where a mount tells of calls, below its root.
const traceFile = ".lockfs/trace"

func traceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trace MOUNT",
		Short: "Record what programs ask of a mount and are answered, for lockfs audit verify",
		Long: `Record what programs of this host ask of a mount and are answered, until it is interrupted: names that are made exclusively,
removed and renamed, and locks of flock and fcntl that are taken and given up. Each is a line of JSON with when it began and
ended, by CLOCK_BOOTTIME and by the cluster's clock as the mount reckons it, and who asked. Give it to lockfs audit verify
with the logs of the servers: that says whether what programs were told fits what the servers wrote.

Only root can. While nobody records, it costs nothing; while somebody does, some microseconds a call. What is read too
slowly is left out, and a line says how much. Recording ends with the mount.`,
		Example: `  lockfs trace /locks > $(hostname).trace`,
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return trace(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
}

// trace copies until ctx ends.
func trace(ctx context.Context, mount string, to io.Writer) error {
	file, err := os.Open(filepath.Join(mount, traceFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: it is no mount of lockfs, or one of an older version; `lockfs doctor` tells where lockfs is mounted", cli.Word(mount))
	case err != nil:
		return err
	}
	failed := make(chan error, 1)
	go func() {
		_, err := io.Copy(to, file)
		failed <- err
	}()
	select {
	case err := <-failed:
		return errors.Join(err, file.Close())
	case <-ctx.Done():
		return nil // the read ends with this process
	}
}
