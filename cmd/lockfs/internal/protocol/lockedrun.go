package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
	"lockfs/formats/pause"
)

// runLock is the lock of a command, by the rules of its format.
type runLock interface {
	// acquire acquires the lock, with the configured wait, and returns its fencing token if there is one.
	acquire(ctx context.Context) (token string, err error)
	// keep keeps the lock fresh until ctx ends. It returns an error if the lock is lost.
	keep(ctx context.Context, warn io.Writer) error
	// confirm returns an error if the lock, acquired a while ago, may not live long enough to start a
	// command.
	confirm(ctx context.Context) error
	// release releases the lock; state is how the command ended.
	release(ctx context.Context, state *os.ProcessState) error
	// giveBack releases a lock under which no command was started. It tries for a while; a lost lock is no
	// error.
	giveBack(ctx context.Context) error
}

// lockedRun is a command that runs under a lock.
type lockedRun struct {
	lock   runLock
	answer func(err error) error // reports why the command was not run
	child  *child
	grace  time.Duration
	stderr io.Writer
}

// Help of each command that runs another.
const (
	lostHelp = `The lock is lost when another program removes, replaces or overwrites it. lockfs
then sends SIGTERM to the command and all processes that it started, and SIGKILL
after --grace. An unreadable mount is no loss, unless the lock expires
meanwhile.

lockfs passes SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2 on to the
process group of the command. With a controlling terminal the command is in the
group of lockfs, and Ctrl-C reaches it directly. While no command runs, the
first four end lockfs, on a hanging mount after five seconds; a lock that is
acquired later is released.

If lockfs is killed (SIGKILL), the command and all processes that it started end
as above, also in other sessions, and the lock stays until they have ended. If
its worker, the process lockfs-worker, is killed, the lock can be free at once;
lockfs then kills these processes.

On a mount of lockfs the command finds the fencing token of the lock in
LOCKFS_TOKEN.`

	runJSONHelp = `With --json lockfs reports in JSON: while it waits on standard error, and if it did
not run the command on standard output. The fields are outcome, state, format,
path, holder, host, pid, acquired, expires, age_seconds, token, reason and
message. Unknown fields are left out.`
)

// addGrace adds the flag for the time between SIGTERM and SIGKILL.
func addGrace(flags *pflag.FlagSet, grace *time.Duration) {
	flags.DurationVar(grace, "grace", 10*time.Second, "time from SIGTERM to SIGKILL for a command that lost its lock")
}

// pathAndCommand parses PATH, flags and COMMAND, which may begin with --. Flags behind the name of COMMAND
// belong to COMMAND.
func pathAndCommand(cmd *cobra.Command, command *[]string) {
	cmd.Flags().SetInterspersed(false) // so parsing stops at PATH
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		usage := fmt.Errorf("there is no command; usage: %s", cmd.UseLine())
		if len(args) < 2 {
			return usage
		}
		if err := cmd.Flags().Parse(args[1:]); errors.Is(err, pflag.ErrHelp) {
			return err
		} else if err != nil {
			return cmd.FlagErrorFunc()(cmd, err)
		}
		if help, err := cmd.Flags().GetBool("help"); err == nil && help {
			return pflag.ErrHelp
		}
		if *command = cmd.Flags().Args(); len(*command) == 0 {
			return usage
		}
		return nil
	}
}

func runUnder(cmd *cobra.Command, a *answer, lock runLock, command []string, grace time.Duration) error {
	if grace < 0 {
		return fmt.Errorf("--grace %v: it must not be negative", grace)
	}
	notRun := func(err error) error { return a.end(cmd.OutOrStdout(), err) }
	if _, err := exec.LookPath(command[0]); err != nil {
		return notRun(cannotRun(err))
	}
	r := &lockedRun{lock: lock, answer: notRun, child: newChild(cmd, command), grace: grace, stderr: cmd.ErrOrStderr()}
	return r.run(cmd.Context())
}

func (r *lockedRun) run(ctx context.Context) error {
	// After a signal during the wait, lockfs does not acquire the lock.
	waiting, stop := untilEnded(ctx)
	defer stop()
	r.child.listenForEnd()
	defer r.child.stopListening()
	token, err := r.lock.acquire(waiting)
	if err != nil {
		return r.answer(err)
	}
	ctx = context.WithoutCancel(ctx) // also while the command ends after a signal
	r.child.setToken(token)
	if r.child.isTold() {
		<-waiting.Done() // by the same signal
	}
	r.child.listen()
	if waiting.Err() != nil {
		err = cli.Stopped(waiting, errors.New("the command was not started"))
	} else if err = r.child.start(); err != nil {
		err = cannotRun(err)
	}
	if err != nil {
		return r.answer(errors.Join(err, r.lock.giveBack(ctx)))
	}
	return r.hold(ctx)
}

// untilEnded returns a context that ends with a signal in ending.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return cli.UntilSignal(ctx, ending...)
}

// hold keeps the lock until the command has ended, and releases it. When the lock is lost, it stops the
// command.
func (r *lockedRun) hold(ctx context.Context) error {
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	kept := make(chan error, 1)
	go func() { kept <- r.lock.keep(keeping, r.stderr) }()
	state, lost := r.child.await(kept)
	switch {
	case errors.Is(lost, errOrphaned):
		// The lock stays until all processes have ended, even if one hangs in the kernel.
		for ended := r.child.end(r.grace); !ended; {
			ended = r.child.end(0)
		}
		state = r.child.cmd.ProcessState
	case lost != nil:
		fmt.Fprintln(r.stderr, "lockfs: another program may have the lock now; stopping the command") // the cause follows once it has ended
		r.child.end(r.grace)
		worker.Current().Ran()
		return lostMeanwhile(lost)
	}
	stop()
	worker.Current().Ran()
	if lost := <-kept; lost != nil {
		return lostMeanwhile(lost)
	}
	return r.release(ctx, state)
}

func lostMeanwhile(err error) error {
	return cli.Exit(cli.ExitLost, fmt.Errorf("the lock was lost while the command ran: %w", err))
}

// release returns the exit status of the command, even if the lock cannot be removed. A missing lock is an
// error even after a successful command: it was lost.
func (r *lockedRun) release(ctx context.Context, state *os.ProcessState) error {
	err := r.lock.release(ctx, state)
	if cli.IsLost(err) {
		return cli.Exit(cli.ExitLost, fmt.Errorf("the lock was lost while the command ran, which ended with %d: %w", exitOf(state), err))
	}
	if err != nil {
		fmt.Fprintf(r.stderr, "lockfs: the lock is not released: %v\n", err)
	}
	return ended(state, nil)
}

// ended returns nil for a successful command, otherwise its exit code without a message.
func ended(state *os.ProcessState, err error) error {
	if err != nil || state.Success() {
		return err
	}
	return &cli.ExitStatus{Code: exitOf(state)}
}

// forEver is a wait without a limit.
const forEver = time.Duration(math.MaxInt64)

// waitedInVain reports whether err means another holder or the end of the wait. A lock that could not be
// given back is neither.
func waitedInVain(err error) bool {
	var exit *cli.ExitStatus
	blocked := errors.As(err, &exit) && (exit.Code == cli.ExitBlocked || exit.Code == cli.ExitTimedOut)
	return (blocked || errors.Is(err, context.Canceled)) && !errors.Is(err, errNotReleased)
}

// How long, and how often, lockfs tries to give back a lock without a command.
const (
	giveBackTime  = 5 * time.Second
	giveBackPause = 200 * time.Millisecond
)

var errNotReleased = errors.New("the lock is not released")

// notReleased wraps the error of a release. It returns nil for a lost lock.
func notReleased(err error) error {
	if err == nil || cli.IsLost(err) {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotReleased, err)
}

// persistently repeats a step of giving a lock back, even if ctx has ended. It stops once the lock is lost.
func persistently(ctx context.Context, try func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	deadline := time.Now().Add(giveBackTime)
	for {
		err := try(ctx)
		if err == nil || cli.IsLost(err) || time.Now().After(deadline) {
			return err
		}
		_ = pause.For(ctx, giveBackPause)
	}
}

// notAcquired returns the exit status for err: another holder, the end of the wait, or a signal.
func notAcquired(ctx context.Context, waited time.Duration, err error) error {
	if waited > 0 && ctx.Err() == nil {
		return cli.Exit(cli.ExitTimedOut, fmt.Errorf("not acquired within %s: %w", cli.Setting(waited), err))
	}
	err = cli.Stopped(ctx, fmt.Errorf("not acquired: %w", err))
	var exit *cli.ExitStatus
	if errors.As(err, &exit) {
		return err
	}
	return cli.Exit(cli.ExitBlocked, err)
}
