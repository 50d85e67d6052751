// Command lockfs mounts a directory on every host of a cluster in which a lock is a file.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand()
	if filepath.Base(os.Args[0]) == mountHelper {
		root = mountHelperCommand()
	}
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lockfs:", err)
		stop()
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "lockfs",
		Short: "A directory on every host of a cluster in which a lock is a file",
		Long: `lockfs mounts one directory on every host of a cluster. What is created there exclusively on one host
(set -o noclobber, O_CREAT|O_EXCL, mkdir, ln, mv -n) exists on all of them, so programs written for one
machine exclude each other across hosts.

Every flag can also be set by a variable: --data is LOCKFS_DATA, --op-timeout is LOCKFS_OP_TIMEOUT.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnvironment(cmd)
		},
	}
	root.AddCommand(devCommand(), serverCommand(), mountCommand(), statusCommand(), memberCommand(), sessionCommand(),
		hostCommand(), locksCommand(), ruleCommand(), eventsCommand(), rmCommand(), versionCommand(), guardCommand())
	return root
}
