package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// Program is a root command, and the name that it says errors under.
type Program struct {
	Root *cobra.Command
	Name string
}

// Main runs the program that goes by the name under which this process was started, and ends the process.
func Main(named func(name string) Program) {
	ctx, stop := UntilSignal(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := named(filepath.Base(os.Args[0]))
	if err := program.Root.ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(Report(os.Stderr, program.Name, err))
	}
}

// Root is a program of some commands, whose flags are variables too.
func Root(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use: use, Short: short, Long: long,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return FlagsFromEnvironment(cmd)
		},
	}
	root.AddCommand(commands...)
	root.SetFlagErrorFunc(WrongFlag)
	return root
}

// Report prints an error of the program of a name and answers the exit code for it.
func Report(w io.Writer, name string, err error) int {
	status := &ExitStatus{1, err}
	errors.As(err, &status)
	if status.Err != nil {
		said := err.Error()
		if more := advice(err); more != "" && status.Code != ExitCannotRun && status.Code != ExitNotFound {
			said += "; " + more
		}
		fmt.Fprintln(w, name+":", Message(said)) // it may quote names that others chose
	}
	return status.Code
}
