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
)

// Program is a root command, and the name that it says errors under.
type Program struct {
	Root *cobra.Command
	Name string
}

// Main runs the program that goes by the name under which this process was started, and ends the process.
func Main(named func(name string) Program) {
	ctx, stop := untilSignal(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := named(filepath.Base(os.Args[0]))
	if err := program.Root.ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(report(os.Stderr, program.Name, err))
	}
}

// Root is a program of some commands, whose flags are variables too.
func Root(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use: use, Short: short, Long: long,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnvironment(cmd)
		},
	}
	root.AddCommand(commands...)
	root.SetFlagErrorFunc(wrongFlag)
	return root
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
