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

	"lockfs/cmd/lockfs/internal/cli/worker"
)

// Program is a root command and the name for its errors.
type Program struct {
	Root *cobra.Command
	Name string
}

// Main runs the program for the name of this process, and exits. [OnMount] commands run in a worker.
func Main(named func(name string) Program) {
	self := worker.Current()
	if self != nil {
		work(self, named(self.Name))
	}
	program := named(filepath.Base(os.Args[0]))
	if cmd, _, err := program.Root.Find(os.Args[1:]); err == nil && cmd.Annotations[onMount] != "" {
		os.Exit(worker.Run(program.Name, cmd.Annotations[onMount] == runsCommand))
	}
	ctx, stop := UntilSignal(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := HideToken()
	if err == nil {
		err = program.Root.ExecuteContext(ctx)
	}
	if err != nil {
		stop()
		os.Exit(Report(os.Stderr, program.Name, err))
	}
}

// work runs a command in this process, a worker. Its context also ends with the front.
func work(self *worker.Worker, program Program) {
	ctx, stop := UntilSignal(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		<-self.Gone()
		cancel(fmt.Errorf("%w: %w", worker.ErrNoFront, context.Canceled))
	}()
	err := program.Root.ExecuteContext(ctx)
	stop()
	switch {
	case err == nil:
		self.Exit(0)
	case self.IsOrphan(): // the front is gone
		self.Exit(ExitFailed)
	default:
		self.Exit(Report(os.Stderr, program.Name, err))
	}
}

const (
	onMount     = "lockfs/on-mount"
	touches     = "touches"
	runsCommand = "runs"
)

// OnMount marks a command and its subcommands: they use a file system, which may hang. A signal ends them
// even then.
func OnMount(cmd *cobra.Command) *cobra.Command {
	markOnMount(cmd, touches)
	for _, sub := range cmd.Commands() {
		OnMount(sub)
	}
	return cmd
}

// RunsCommand marks an [OnMount] command that runs another command under a lock.
func RunsCommand(cmd *cobra.Command) *cobra.Command {
	markOnMount(cmd, runsCommand)
	return cmd
}

func markOnMount(cmd *cobra.Command, how string) {
	if cmd.Annotations[onMount] != "" || !cmd.Runnable() {
		return
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[onMount] = how
}

// Keep returns an error if a lock that was just acquired must be released: a signal has ended ctx, or the
// front process is gone. After nil the command must succeed.
func Keep(ctx context.Context) error {
	err := context.Cause(ctx)
	if err == nil {
		err = worker.Current().Keep()
	}
	if err == nil {
		return nil
	}
	return Stopped(ctx, fmt.Errorf("not acquired: %w", err))
}

// Root returns a program of commands. Each flag has an environment variable.
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

// Report prints an error and returns its exit code.
func Report(w io.Writer, name string, err error) int {
	status := &ExitStatus{1, err}
	errors.As(err, &status)
	if status.Err != nil {
		said := err.Error()
		if more := advice(err); more != "" && status.Code != ExitCannotRun && status.Code != ExitNotFound {
			said += "; " + more
		}
		fmt.Fprintln(w, name+":", Message(said)) // names in it may come from other users
	}
	return status.Code
}
