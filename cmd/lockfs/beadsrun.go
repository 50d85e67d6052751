package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockfs/formats/beads"
)

// beadsRun is a command that runs under the lock of a database.
type beadsRun struct {
	dir    string
	lock   *beads.ExclusiveLock
	grace  time.Duration
	every  time.Duration // how often the lock is looked at
	stderr io.Writer
	child  *child
}

func beadsRunCommand() *cobra.Command {
	var (
		holder, version string
		r               beadsRun
	)
	cmd := &cobra.Command{
		Use:   "run DIR --holder NAME [--version V] [--grace D] -- COMMAND [ARG...]",
		Short: "Run a command while holding the lock of a database",
		Long: `Take the lock of a database, run a command, and release the lock when the command ends. It does not wait for the
lock. The lock names this process, so that it ends with it, whatever ends it; the command is then killed, too.

When the lock is lost, because somebody removed or replaced it, the command and the processes that it started get
SIGTERM, and after --grace SIGKILL. SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2 to lockfs are passed on to
them. On a terminal only the command itself gets signals from lockfs.

On a mount of lockfs the command has the lock's fencing token in the variable LOCKFS_TOKEN.

The exit code is the command's own, or 128+N if signal N ended it, except for

   75  the lock was not acquired, somebody else has it; the command was not run
  124  the lock was lost while the command ran
  125  lockfs failed, or its arguments are wrong; the command was not run
  126  the command cannot be run
  127  the command is not found`,
		Example: "  lockfs beads run .beads --holder ci-runner -- make issues",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return failed(fmt.Errorf("usage: %s", cmd.UseLine()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.dir, err = beadsDir(args[0]); err == nil {
				r.lock, err = newBeadsLock(holder, version)
			}
			if err == nil && r.every <= 0 {
				err = errors.New("--check-every must be more than 0")
			}
			if err != nil {
				return failed(err)
			}
			r.stderr = cmd.ErrOrStderr()
			r.child = newChild(cmd, args[1:], syscall.SIGKILL) // the lock dies with this process, too
			return r.run(cmd.Context())
		},
	}
	addBeadsHolder(cmd, &holder, &version)
	cmd.Flags().DurationVar(&r.grace, "grace", 10*time.Second, "how long after SIGTERM a command that lost its lock is killed")
	cmd.Flags().DurationVar(&r.every, "check-every", time.Second, "how often to see whether the lock is still there")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(err) })
	return cmd
}

func (r *beadsRun) run(ctx context.Context) error {
	r.child.listen()
	defer r.child.stopListening()
	if err := beads.Acquire(ctx, r.dir, r.lock); err != nil {
		return failed(explainBeads(r.dir, "not acquired", err))
	}
	result := r.holding()
	return r.release(context.WithoutCancel(ctx), result)
}

// holding runs the command and answers how it ended.
func (r *beadsRun) holding() *exitStatus {
	token, err := lockToken(r.path())
	if err != nil {
		return &exitStatus{exitFailed, fmt.Errorf("cannot read the lock's token: %w", err)}
	}
	r.child.setToken(token)
	if err := r.child.start(); err != nil {
		return cannotRun(fmt.Errorf("cannot run the command: %w", err))
	}
	lost, stop := r.watch()
	defer stop()
	state, why := r.child.await(lost)
	if why != nil {
		fmt.Fprintf(r.stderr, "lockfs: the lock is lost, the command is stopped\n")
		r.child.end(r.grace)
		return &exitStatus{exitLost, fmt.Errorf("the lock was lost while the command ran: %w", why)}
	}
	return statusOf(state)
}

func (r *beadsRun) path() string { return filepath.Join(r.dir, beads.FileName) }

// watch tells why the lock is lost, once it is.
func (r *beadsRun) watch() (lost <-chan error, stop func()) {
	found, end := make(chan error, 1), make(chan struct{})
	go func() {
		ticker := time.NewTicker(r.every)
		defer ticker.Stop()
		warned := false
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			why, err := r.isLost()
			if why != nil {
				found <- why
				return
			}
			if err != nil && !warned {
				fmt.Fprintf(r.stderr, "lockfs: cannot tell whether the lock is still there: %v\n", err)
			}
			warned = err != nil
		}
	}()
	return found, func() { close(end) }
}

// isLost tells why the lock is lost. That it cannot be read is no evidence: a mount that is cut off from the
// others answers nothing, but what is locked stays locked.
func (r *beadsRun) isLost() (why, err error) {
	current, err := beads.Read(r.dir)
	var malformed *beads.MalformedError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("somebody removed %s", word(r.path())), nil
	case errors.As(err, &malformed):
		return fmt.Errorf("somebody overwrote %s: %w", word(r.path()), err), nil
	case err != nil:
		return nil, err
	case !r.lock.Same(current):
		return &beads.HeldError{Lock: current}, nil
	}
	return nil, nil
}

// statusOf is how the command ended.
func statusOf(state *os.ProcessState) *exitStatus {
	result := &exitStatus{code: exitOf(state)}
	if how, ok := state.Sys().(syscall.WaitStatus); ok && how.Signaled() {
		result.err = fmt.Errorf("the command was ended by signal %v", how.Signal())
	}
	return result
}

// release releases the lock and answers the final result: a command that ended well has still lost its lock
// if that is not there any more.
func (r *beadsRun) release(ctx context.Context, result *exitStatus) error {
	if result.code == exitLost && result.err != nil {
		return result
	}
	err := beads.Release(ctx, r.dir, r.lock)
	var malformed *beads.MalformedError
	switch {
	case errors.Is(err, beads.ErrChanged) || errors.As(err, &malformed):
		return &exitStatus{exitLost, fmt.Errorf("the lock was lost while the command ran, which ended with %d: %w", result.code, err)}
	case err != nil:
		fmt.Fprintf(r.stderr, "lockfs: the lock is not released, and goes stale instead: %v\n", err)
	}
	if result.code == 0 {
		return nil
	}
	return result
}
