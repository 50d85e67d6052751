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
		Short: "Record file system calls of a mount for audit verify",
		Long: `Record the calls of programs on this mount until Ctrl-C: exclusive creations,
removals, renames, flock and fcntl locks. Each is a line of JSON with its begin
and end (CLOCK_BOOTTIME and cluster time) and its caller. lockfs audit verify
compares the recording with the logs of the servers.

Only root can record. A recording costs some microseconds a call. If its reader
is too slow, calls are left out, and a line reports how many. The recording ends
with the mount.`,
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
