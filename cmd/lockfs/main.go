// Command lockfs mounts a directory on every host of a cluster in which a lock is a file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/manual"
)

func main() {
	ctx, stop := untilSignal(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, name := rootCommand(), "lockfs"
	switch filepath.Base(os.Args[0]) {
	case mountHelper, mountHelperOfFuse:
		root = mountHelperCommand()
	case swarmScript:
		root, name = swarmScriptCommand(), swarmScript
	}
	if err := root.ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(report(os.Stderr, name, err))
	}
}

// exitStatus is an error with an exit code of its own. Without err there is nothing to say.
type exitStatus struct {
	code int
	err  error
}

// Error says what happened, and as a last resort the code.
func (e *exitStatus) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap is what happened.
func (e *exitStatus) Unwrap() error { return e.err }

// report prints an error of the program of a name and answers the exit code for it.
func report(w io.Writer, name string, err error) int {
	status := &exitStatus{1, err}
	errors.As(err, &status)
	if status.err != nil {
		said := err.Error()
		if more := advice(err); more != "" && status.code != exitCannotRun {
			said += "; " + more
		}
		fmt.Fprintln(w, name+":", said)
	}
	return status.code
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "lockfs",
		Short: "A directory on every host of a cluster in which a lock is a file",
		Long: `lockfs mounts one directory on every host of a cluster. What is created there exclusively on one host
(set -o noclobber, O_CREAT|O_EXCL, mkdir, ln, mv -n) exists on all of them, so programs written for one
machine exclude each other across hosts.

Every flag can also be set by a variable: --data is LOCKFS_DATA, --op-timeout is LOCKFS_OP_TIMEOUT.

The exit code is 0, or 1 after an error, unless the help of a command says more of it.

` + manual.Listing(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnvironment(cmd)
		},
	}
	root.AddCommand(devCommand(), serverCommand(), mountCommand(), statusCommand(), memberCommand(), sessionCommand(),
		hostCommand(), locksCommand(), ruleCommand(), eventsCommand(), rmCommand(), swarmCommand(), beadsCommand(), towerCommand(),
		semaphoreCommand(), forrstCommand(), runCommand(), waitCommand(),
		benchCommand(), versionCommand(), guardCommand(), manual.DocsCommand(programVersion()))
	root.SetHelpCommand(manual.HelpCommand(isTerminal))
	root.SetFlagErrorFunc(wrongFlag)
	complete(root)
	return root
}
