package protocol

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
	"lockfs/formats/tower"
	"lockfs/raftstore/hostinfo"
)

// towerRun is the lock of an execution.
type towerRun struct {
	towerRequest
	step         string
	every, grace time.Duration

	answer *answer
	stderr io.Writer
	locks  tower.Dir
	name   string
	taken  *tower.Lock
	file   tower.LockFile
	since  time.Duration // start of its life, by hostinfo.BootTime: the last request for it or its renewal
}

func towerRunCommand() *cobra.Command {
	run := towerRun{answer: &answer{outcome: outcomeAcquired}}
	cmd := &cobra.Command{
		Use:   "run [NAME] [flags] -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Acquire a lock, run a command, renew the lock meanwhile, and release it with the
result of the command. Without NAME, or with --mode observe, the command runs
without a lock; without NAME lockfs also prints a warning.

A lock that could be neither renewed nor read for longer than its ttl is lost
too; lockfs then does not touch the lock of another request. Other failures of a
heartbeat are warnings, and the third in a row is the event heartbeat_failed. If
the host fails, the lock stays until it is stale.` + cli.More + lostHelp + `

The response to a blocked request is on standard error. ` + waitHelp + `

` + runJSONHelp + `

` + cli.RunExitHelp() + `

A failed removal of the lock does not change the exit code; it is the event
lock_release_failed.`,
		Example: `  lockfs tower run money-tracker-production --intent deploy-app --intent-version 1.2.0 -- ./deploy.sh
  lockfs tower run nightly --intent backup --intent-version 1 --wait 10m --grace 1m --audit-log /var/log/tower.jsonl -- ./backup.sh`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash < 0 || dash == len(args):
				return fmt.Errorf("there is no command: put it after --; usage: %s", cmd.UseLine())
			case dash > 1:
				return fmt.Errorf("there are %d arguments before --, and only NAME belongs there; usage: %s", dash, cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			return run.run(cmd, args[:dash], args[dash:])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&run.requestID, "request-id", "", "unique id of this execution (default: random)")
	flags.StringVar(&run.step, "failure-step", "", "name of the step in the event of a failure")
	flags.DurationVar(&run.every, "every", 0, "interval of renewals (default 30s, or a third of a shorter ttl)")
	addGrace(flags, &run.grace)
	run.add(flags)
	run.answer.add(flags)
	cli.Often(flags, "dir", "force-lock", "intent", "intent-version", "json", "ttl", "wait")
	return cli.RunsCommand(cmd)
}

func (r *towerRun) run(cmd *cobra.Command, names, command []string) error {
	mode, err := tower.ParseMode(r.mode)
	if err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	template := ""
	if len(names) == 1 {
		if template = names[0]; template == "" && mode != tower.Observe {
			return errors.New("NAME is empty; leave it out to run without a lock")
		}
	}
	locks, warning := mode.Locks(template)
	if warning != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "lockfs: warning:", warning)
	}
	if !locks {
		return unlocked(newChild(cmd, command), r.grace)
	}
	if r.locks, r.name, err = r.openFor(template); err != nil {
		return err
	}
	return r.locked(cmd, command)
}

// unlocked runs the command without a lock (sections 9.2 and 9.3).
func unlocked(child *child, grace time.Duration) error {
	if err := child.start(); err != nil {
		return cannotRun(err)
	}
	defer child.stopListening()
	state, err := child.await(nil)
	if errors.Is(err, errOrphaned) {
		child.end(grace)
	}
	worker.Current().Ran()
	return ended(state, err)
}

func (r *towerRun) locked(cmd *cobra.Command, command []string) error {
	if err := r.prepare(); err != nil {
		return err
	}
	r.stderr = cmd.ErrOrStderr()
	r.answer.look = lookAtTower(r.locks, r.name)
	r.notice = newNotice(cmd, r.answer.asJSON, forcible(r.answer.look, cmd.CommandPath()))
	return runUnder(cmd, r.answer, r, command, r.grace)
}

// prepare completes and checks the request before the lock is acquired.
func (r *towerRun) prepare() error {
	if r.requestID == "" {
		var unique [8]byte
		_, _ = rand.Read(unique[:])
		r.requestID = "req_" + hex.EncodeToString(unique[:])
	}
	if err := errors.Join(r.checkTTL(), (&towerOutcome{resultFailure, r.step}).check()); err != nil {
		return err
	}
	if r.every == 0 {
		r.every = tower.RecommendedInterval(r.ttl)
	}
	return checkEvery(r.every, r.ttl)
}

// acquire implements [runLock]. The response to a blocked request is on standard error.
func (r *towerRun) acquire(ctx context.Context) (string, error) {
	asked := hostinfo.BootTime()
	taken, err := r.towerRequest.acquire(ctx, r.stderr, r.locks, r.name, os.Getpid())
	if over := context.Cause(ctx); errors.As(over, new(*cli.ExitStatus)) && waitedInVain(err) { // of a turn
		return "", over
	}
	if err != nil {
		return "", answerBlocked(r.answer, r.stderr, "", err)
	}
	r.taken, r.since = taken.Lock, asked
	r.file.Note(taken.File)
	if err := r.outlive(); err != nil {
		return "", errors.Join(fmt.Errorf("not acquired: %w", err), r.giveBack(ctx))
	}
	if taken.Token == 0 {
		return "", nil
	}
	return strconv.FormatUint(taken.Token, 10), nil
}

// outlive ensures a life long enough to start a command, like outlive of a fileLock: a late reply may be
// about a stale lock.
func (r *towerRun) outlive() error {
	asked, life := hostinfo.BootTime(), safely(3*tower.HeartbeatInterval(r.ttl))
	if asked-r.since < r.every {
		return nil
	}
	renewed, err := r.locks.HeartbeatFile(r.name, r.requestID, &r.file)
	if err != nil {
		return fmt.Errorf("the lock cannot be renewed before the command begins: %w", err)
	}
	if r.taken, r.since = renewed, asked; hostinfo.BootTime()-asked >= life {
		return fmt.Errorf("the renewal took longer than the lifetime of the lock, %v", life)
	}
	return nil
}

// confirm implements [runLock].
func (r *towerRun) confirm(context.Context) error {
	if _, err := r.locks.Own(r.name, r.requestID); err != nil {
		return err
	}
	return r.outlive()
}

func (r *towerRun) keep(ctx context.Context, warn io.Writer) error {
	since := time.Now().Add(r.since - hostinfo.BootTime())
	return keepTower(ctx, warn, r.locks, r.taken, since, r.every, &r.auditor, &r.file)
}

// release records the command's result, even if the lock cannot be removed (section 8.3).
func (r *towerRun) release(_ context.Context, state *os.ProcessState) error {
	return r.end(state, r.locks.Release)
}

// giveBack implements [runLock]. All attempts together write one event.
func (r *towerRun) giveBack(ctx context.Context) error {
	err := r.end(nil, func(name, requestID string) (lock *tower.Lock, err error) {
		err = persistently(ctx, func(context.Context) (err error) {
			lock, err = r.locks.Release(name, requestID)
			return err
		})
		return lock, err
	})
	return notReleased(err)
}

func (r *towerRun) end(state *os.ProcessState, release func(name, requestID string) (*tower.Lock, error)) error {
	outcome := towerOutcome{result: resultFailure, step: r.step}
	if state != nil && state.Success() {
		outcome = towerOutcome{result: resultSuccess}
	}
	lock, err := release(r.name, r.requestID)
	var invalid *tower.InvalidError
	if errors.As(err, &invalid) && r.file.Replaced(r.locks.LockPath(r.name)) {
		err = &tower.LostError{LockName: r.name, RequestID: r.requestID, Err: err}
	}
	return releasedTower(r.locks, r.name, r.requestID, lock, err, &outcome, &r.auditor)
}
