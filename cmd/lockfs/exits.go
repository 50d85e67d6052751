package main

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
)

// Exit codes of the commands that take, release and look at locks by a protocol: one table for all, endings. Those from
// 124 on are what timeout(1) and env(1) use, so that they differ from most commands' own.
const (
	exitBlocked   = 75 // EX_TEMPFAIL of sysexits.h
	exitTimedOut  = 76
	exitTurnOver  = 77
	exitNotOwner  = 78
	exitNoLock    = 79
	exitLost      = 124
	exitFailed    = 125
	exitCannotRun = 126
	exitNotFound  = 127
	exitSignal    = 128 // and the number of the signal
)

// Where a specification says with which code a command ends, that counts. Of `lockfs tower check` these are section 6.2's,
// and two more; `lockfs swarm` ends with exitSwarm after any error.
const (
	exitStale = iota
	exitActive
	exitFree
	exitInvalid

	exitSwarm = 1
)

// ending is one way in which a protocol command ends that has not done what it should.
type ending struct {
	code    int
	outcome string // what --json calls it
	meaning string
}

var endings = []ending{
	{exitBlocked, "held", "not acquired: somebody else has the lock"},
	{exitTimedOut, "timed_out", "not acquired: somebody else still has the lock, after as long as it may wait"},
	{exitTurnOver, "turn_over", "the turn of --once-per is over"},
	{exitNotOwner, "not_owner", "the lock is somebody else's"},
	{exitNoLock, "no_lock", "there is no such lock"},
	{exitLost, "lost", "the lock was lost: somebody took it away, or it went stale"},
	{exitFailed, "failed", "anything else, such as a wrong flag or a directory that cannot be written"},
	{exitCannotRun, "cannot_run", "the command cannot be run"},
	{exitNotFound, "not_found", "the command is not found"},
	{exitSignal, "interrupted", "interrupted by signal N"},
}

// endingOf finds the row of the table for a code.
func endingOf(code int) ending {
	for _, e := range endings {
		if e.code == min(code, exitSignal) {
			return e
		}
	}
	return endingOf(exitFailed)
}

// exitHelp is the part of the table that a command has a use for, for its help: every command can fail and be interrupted.
func exitHelp(codes ...int) string {
	return "Exit codes:\n\n  0      done\n" + exitRows(append(codes, exitFailed, exitSignal))
}

// runExitHelp is the same for what runs another command.
func runExitHelp(codes ...int) string {
	return "The exit code is the command's own, or 128+N if signal N ended it. But if the command was not run, or with 124,\n" +
		"it is\n\n" + exitRows(append(codes, exitBlocked, exitTimedOut, exitLost, exitFailed, exitCannotRun, exitNotFound, exitSignal))
}

func exitRows(codes []int) string {
	slices.Sort(codes)
	var rows strings.Builder
	for _, code := range codes {
		shown := strconv.Itoa(code)
		if code == exitSignal {
			shown = "128+N"
		}
		fmt.Fprintf(&rows, "  %-5s  %s\n", shown, endingOf(code).meaning)
	}
	return strings.TrimSuffix(rows.String(), "\n")
}

// failed gives an error that has no exit code yet the one it has in the commands that use [exits].
func failed(err error) error {
	var exit *exitStatus
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case isLost(err):
		return &exitStatus{exitLost, err}
	}
	return &exitStatus{exitFailed, err}
}

// exits makes a command and what is wrong with its flags and arguments end with the codes of the table.
func exits(cmd *cobra.Command) *cobra.Command {
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		return failed(args(cmd, words))
	}
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		err := run(cmd, words)
		if errors.Is(err, context.Canceled) {
			err = stopped(cmd.Context(), err)
		}
		return failed(err)
	}
	return cmd
}

// flagError is what is wrong with the flags of such a command.
func flagError(cmd *cobra.Command, err error) error {
	return failed(wrongFlag(cmd, err))
}

// interruption is why a context ended: this process was told to stop.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return "interrupted by signal: " + i.signal.String() }

// Is makes it the end of any context.
func (i *interruption) Is(err error) bool { return err == context.Canceled }

// untilSignal is signal.NotifyContext with an [interruption] as the cause.
func untilSignal(ctx context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	told := make(chan os.Signal, 1)
	signal.Notify(told, signals...)
	go func() {
		select {
		case s := <-told:
			cancel(&interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(told)
		cancel(nil)
	}
}

// stopped gives an error the exit code of the signal that ended ctx, if one did.
func stopped(ctx context.Context, err error) error {
	var exit *exitStatus
	var told *interruption
	if errors.As(err, &exit) || !errors.As(context.Cause(ctx), &told) {
		return err
	}
	return &exitStatus{exitSignal + int(told.signal), fmt.Errorf("%w: %w", told, err)}
}
