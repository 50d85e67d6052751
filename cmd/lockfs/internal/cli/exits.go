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

// ExitWithoutCluster is the exit code of `lockfs server` for a data directory that belongs to no cluster.
const ExitWithoutCluster = 4

// Exit codes of the commands that take, release and look at locks by a protocol: one table for all, [Endings]. Those from
// 124 on are what timeout(1) and env(1) use, so that they differ from most commands' own.
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
	ExitSignal    = 128 // and the number of the signal
)

// Where a specification says with which code a command ends, that counts. Of `lockfs tower check` these are section 6.2's,
// and two more; `lockfs swarm` ends with ExitSwarm after any error.
const (
	ExitStale = iota
	ExitActive
	ExitFree
	ExitInvalid

	ExitSwarm = 1
)

// Ending is one way in which a protocol command ends that has not done what it should.
type Ending struct {
	Code    int
	Outcome string // what --json calls it
	meaning string
}

// Endings are all of them.
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

// EndingOf finds the row of the table for a code.
func EndingOf(code int) Ending {
	for _, e := range Endings {
		if e.Code == min(code, ExitSignal) {
			return e
		}
	}
	return EndingOf(ExitFailed)
}

// ExitHelp is the part of the table that a command has a use for, for its help: every command can fail and be interrupted.
func ExitHelp(codes ...int) string {
	return "Exit codes:\n\n  0      done\n" + ExitRows(append(codes, ExitFailed, ExitSignal))
}

// RunExitHelp is the same for what runs another command.
func RunExitHelp(codes ...int) string {
	return "The exit code is the command's own, or 128+N if signal N ended it. But if the command was not run, or with 124,\n" +
		"it is\n\n" + ExitRows(append(codes, ExitBlocked, ExitTimedOut, ExitLost, ExitFailed, ExitCannotRun, ExitNotFound, ExitSignal))
}

// ExitRows are rows of the table.
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

// Failed gives an error that has no exit code yet the one it has in the commands that use [Exits].
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

// Exits makes a command and what is wrong with its flags and arguments end with the codes of the table.
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

// FlagError is what is wrong with the flags of such a command.
func FlagError(cmd *cobra.Command, err error) error {
	return Failed(WrongFlag(cmd, err))
}

// interruption is why a context ended: this process was told to stop.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return "interrupted by signal: " + i.signal.String() }

// Is makes it the end of any context.
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

// UntilTold does so for signals that somebody else listens to.
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

// Stopped gives an error the exit code of the signal that ended ctx, if one did.
func Stopped(ctx context.Context, err error) error {
	var exit *ExitStatus
	var told *interruption
	if errors.As(err, &exit) || !errors.As(context.Cause(ctx), &told) {
		return err
	}
	return &ExitStatus{ExitSignal + int(told.signal), fmt.Errorf("%w: %w", told, err)}
}

// IsLost tells that a lock is lost from what may pass.
func IsLost(err error) bool {
	var lost *semaphore.LostError // of all formats but one
	var towerLost *tower.LostError
	return errors.As(err, &lost) || errors.As(err, &towerLost)
}

// Exit is an error with an exit code of its own. Without err there is nothing to say.
func Exit(code int, err error) *ExitStatus { return &ExitStatus{code, err} }

// ExitStatus is what [Exit] makes.
type ExitStatus struct {
	Code int
	Err  error
}

// Error says what happened, and as a last resort the code.
func (e *ExitStatus) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is what happened.
func (e *ExitStatus) Unwrap() error { return e.Err }
