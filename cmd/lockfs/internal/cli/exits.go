package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"lockfs/formats/semaphore"
	"lockfs/formats/tower"
)

// ExitWithoutCluster is the exit code of `lockfs server` for a data directory without a cluster.
const ExitWithoutCluster = 4

// Exit codes of the commands that acquire, release and inspect locks by a protocol; [Endings] describes them.
// From 124 on they are those of timeout(1) and env(1), so that most commands have other ones.
const (
	ExitBlocked   = 75 // EX_TEMPFAIL of sysexits.h
	ExitTimedOut  = 76
	ExitTurnOver  = 77
	ExitNotOwner  = 78
	ExitNoLock    = 79
	ExitLost      = 124
	ExitFailed    = 125
	ExitCannotRun = 126
	ExitNotFound  = 127
	ExitSignal    = 128 // plus the number of the signal
)

// Exit codes from a specification take precedence. Those of `lockfs tower check` are from section 6.2, with
// two more; `lockfs swarm` exits with ExitSwarm after any error.
const (
	ExitStale = iota
	ExitActive
	ExitFree
	ExitInvalid

	ExitSwarm = 1
)

// Ending describes an exit code of a protocol command other than 0.
type Ending struct {
	Code    int
	Outcome string // in the output of --json
	meaning string
}

// Endings are the ways in which a command of a protocol can end without the lock.
var Endings = []Ending{
	{ExitBlocked, "held", "not acquired: another process holds the lock"},
	{ExitTimedOut, "timed_out", "not acquired: another process still holds the lock after the time limit"},
	{ExitTurnOver, "turn_over", "the turn of --once-per is over"},
	{ExitNotOwner, "not_owner", "the lock has another owner"},
	{ExitNoLock, "no_lock", "there is no such lock"},
	{ExitLost, "lost", "the lock was lost: it was removed or replaced, or expired"},
	{ExitFailed, "failed", "anything else, such as a wrong flag or an unwritable directory"},
	{ExitCannotRun, "cannot_run", "the command cannot be run"},
	{ExitNotFound, "not_found", "the command is not found"},
	{ExitSignal, "interrupted", "interrupted by signal N"},
}

// EndingOf returns the description of an exit code.
func EndingOf(code int) Ending {
	for _, e := range Endings {
		if e.Code == min(code, ExitSignal) {
			return e
		}
	}
	return EndingOf(ExitFailed)
}

// ExitHelp returns the help text for some exit codes, with those of failure and interruption.
func ExitHelp(codes ...int) string {
	return "Exit codes:\n\n  0      done\n" + ExitRows(append(codes, ExitFailed, ExitSignal))
}

// RunExitHelp is ExitHelp for commands running another command.
func RunExitHelp(codes ...int) string {
	return "The exit code is the command's own, or 128+N if signal N ended it. But if the command was not run, or with 124,\n" +
		"it is\n\n" + ExitRows(append(codes, ExitBlocked, ExitTimedOut, ExitLost, ExitFailed, ExitCannotRun, ExitNotFound, ExitSignal))
}

// ExitRows returns a row of the table for each of these exit codes.
func ExitRows(codes []int) string {
	slices.Sort(codes)
	var rows strings.Builder
	for _, code := range codes {
		shown := strconv.Itoa(code)
		if code == ExitSignal {
			shown = "128+N"
		}
		fmt.Fprintf(&rows, "  %-5s  %s\n", shown, EndingOf(code).meaning)
	}
	return strings.TrimSuffix(rows.String(), "\n")
}

// Failed gives an error without an exit code that of a failed [Exits] command.
func Failed(err error) error {
	var exit *ExitStatus
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case IsLost(err):
		return &ExitStatus{ExitLost, err}
	}
	return &ExitStatus{ExitFailed, err}
}

// Exits makes a command use the exit codes of the table, also for wrong flags and arguments.
func Exits(cmd *cobra.Command) *cobra.Command {
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		return Failed(args(cmd, words))
	}
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		err := run(cmd, words)
		if errors.Is(err, context.Canceled) {
			err = Stopped(cmd.Context(), err)
		}
		return Failed(err)
	}
	return cmd
}

// FlagError returns a flag error with its exit code.
func FlagError(cmd *cobra.Command, err error) error {
	return Failed(WrongFlag(cmd, err))
}

// interruption is the cause of a context ended by a signal.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return "interrupted by signal: " + i.signal.String() }

// Is makes errors.Is report context.Canceled.
func (i *interruption) Is(err error) bool { return err == context.Canceled }

// UntilSignal is signal.NotifyContext with an [interruption] as the cause.
func UntilSignal(ctx context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, signals...)
	ctx, cancel := UntilTold(ctx, told)
	return ctx, func() {
		signal.Stop(told)
		cancel()
	}
}

// UntilTold is UntilSignal for a channel with signals.
func UntilTold(ctx context.Context, told <-chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case s := <-told:
			cancel(&interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Stopped gives err the exit code of the signal that ended ctx, if one did.
func Stopped(ctx context.Context, err error) error {
	var exit *ExitStatus
	var told *interruption
	if errors.As(err, &exit) || !errors.As(context.Cause(ctx), &told) {
		return err
	}
	return &ExitStatus{ExitSignal + int(told.signal), fmt.Errorf("%w: %w", told, err)}
}

// IsLost reports whether an error means a lost lock, in any format.
func IsLost(err error) bool {
	var lost *semaphore.LostError // all formats but tower
	var towerLost *tower.LostError
	return errors.As(err, &lost) || errors.As(err, &towerLost)
}

// Exit returns an error with an exit code. With a nil err the program prints nothing.
func Exit(code int, err error) *ExitStatus { return &ExitStatus{code, err} }

// ExitStatus is an error with an exit code.
type ExitStatus struct {
	Code int
	Err  error
}

func (e *ExitStatus) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitStatus) Unwrap() error { return e.Err }
