package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/tower"
)

// towerOutcome is the result of an execution.
type towerOutcome struct{ result, step string }

const (
	resultSuccess = "success"
	resultFailure = "failure"
)

func (o *towerOutcome) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.result, "result", resultSuccess, "success or failure")
	flags.StringVar(&o.step, "failure-step", "", "the failed step, with --result failure")
}

func (o *towerOutcome) check() error {
	switch o.result {
	case resultFailure:
		if !utf8.ValidString(o.step) {
			return fmt.Errorf("--failure-step %s: it must be valid UTF-8", cli.Word(o.step))
		}
	case resultSuccess:
		if o.step != "" {
			return errors.New("--failure-step goes with --result failure")
		}
	default:
		return fmt.Errorf("--result %q: it is %s or %s", o.result, resultSuccess, resultFailure)
	}
	return nil
}

// event returns the event of a release (sections 8.1 and 8.2).
func (o *towerOutcome) event(l *tower.Lock, now time.Time) tower.Released {
	if o.result == resultFailure {
		return l.ReleasedFailed(o.step, now)
	}
	return l.Released(now)
}

func towerReleaseCommand() *cobra.Command {
	var (
		flags     towerFlags
		audit     auditor
		outcome   towerOutcome
		requestID string
	)
	answer := answer{outcome: outcomeReleased}
	cmd := &cobra.Command{
		Use:   "release NAME --request-id ID",
		Short: "Release a lock of a request",
		Long: `Release a lock of a request, after success or failure. If there is no lock, the
command prints a warning and, as the specification demands, exits with 0. The
lock of another request stays.

The events are lock_released and, if the lock could not be removed,
lock_release_failed.

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitNotOwner),
		Example: `  lockfs tower release money-tracker-production --request-id req_abc123
  lockfs tower release money-tracker-production --request-id req_abc123 --result failure --failure-step deploy_manifests`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir, name, err := flags.openFor(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtTower(dir, name)
			if err := errors.Join(checkRequestID(requestID), outcome.check(), audit.check(cmd.ErrOrStderr())); err != nil {
				return err
			}
			err = releaseTower(dir, name, requestID, &outcome, &audit)
			var lost *tower.LostError
			switch {
			case errors.As(err, &lost) && lost.Lock == nil:
				answer.outcome = cli.EndingOf(cli.ExitNoLock).Outcome
				fmt.Fprintf(cmd.ErrOrStderr(), "lockfs: warning: there is no %s to release\n", cli.Word(dir.LockPath(name)))
				return nil
			case errors.As(err, &lost):
				return cli.Exit(cli.ExitNotOwner, err)
			case err != nil:
				return fmt.Errorf("the lock is not released: %w", err)
			}
			return answer.say(cmd, "Lock released: %s\n", name)
		}),
	}
	answer.add(cmd.Flags())
	cmd.Flags().StringVar(&requestID, "request-id", "", "the request with the lock (required)")
	flags.add(cmd.Flags(), true)
	audit.add(cmd.Flags())
	outcome.add(cmd.Flags())
	return cmd
}

// releaseTower removes the lock. It writes the event of the release or of its failure (section 8.3).
func releaseTower(dir tower.Dir, name, requestID string, outcome *towerOutcome, audit *auditor) error {
	lock, err := dir.Release(name, requestID)
	return releasedTower(dir, name, requestID, lock, err, outcome, audit)
}

func releasedTower(dir tower.Dir, name, requestID string, lock *tower.Lock, err error, outcome *towerOutcome, audit *auditor) error {
	var lost *tower.LostError
	switch {
	case err == nil:
		audit.emit(outcome.event(lock, dir.Now()))
		return nil
	case errors.As(err, &lost):
		return err
	}
	path := dir.LockPath(name)
	if lock == nil { // it could not be read either
		lock = &tower.Lock{LockName: name, RequestID: requestID}
	}
	audit.emit(lock.ReleaseFailed(path, err, dir.Now()))
	var invalid *tower.InvalidError
	var of *fs.PathError
	switch { // the command in the message has the path
	case errors.As(err, &invalid):
		return fmt.Errorf("the file is not a valid lock (%w); look at it, and if it is not in use remove it with `%s`",
			invalid.Err, admin.Removal(path))
	case errors.As(err, &of):
		err = of.Err
	}
	return fmt.Errorf("%w; remove it with `%s`", explainBusy(err), admin.Removal(path))
}

func towerHeartbeatCommand() *cobra.Command {
	var (
		flags     towerFlags
		audit     auditor
		requestID string
		every     time.Duration
	)
	answer := answer{outcome: outcomeRenewed}
	cmd := &cobra.Command{
		Use:   "heartbeat NAME --request-id ID",
		Short: "Renew a lock of a request",
		Long: `Renew a lock of a request: only last_heartbeat_at changes. With --every the
command goes on until Ctrl-C. A failure is then a warning, and the third in a
row is the event heartbeat_failed. When the request has lost the lock, the
command ends with that event and exit code 124. That includes a lock that could
be neither renewed nor read for longer than its ttl, since another request may
have stolen it. So end this command before you release the lock.

--every is at most a third of the lock's ttl; 30s or less is recommended.

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitLost),
		Example: `  lockfs tower heartbeat money-tracker-production --request-id req_abc123
  lockfs tower heartbeat money-tracker-production --request-id req_abc123 --every 20s &`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir, name, err := flags.openFor(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtTower(dir, name)
			if err := errors.Join(checkRequestID(requestID), audit.check(cmd.ErrOrStderr())); err != nil {
				return err
			}
			asked := time.Now()
			var file tower.LockFile
			lock, err := dir.HeartbeatFile(name, requestID, &file)
			if err != nil || !cmd.Flags().Changed("every") {
				return explainBusy(err)
			}
			if err := checkEvery(every, lock.TTLSeconds); err != nil {
				return err
			}
			return keepTower(cmd.Context(), cmd.ErrOrStderr(), dir, lock, asked, every, &audit, &file)
		}),
	}
	answer.add(cmd.Flags())
	cmd.Flags().StringVar(&requestID, "request-id", "", "the request with the lock (required)")
	cmd.Flags().DurationVar(&every, "every", 0, "renew the lock at this interval until Ctrl-C")
	flags.add(cmd.Flags(), true)
	audit.add(cmd.Flags())
	return cmd
}

// checkRequestID checks the id of a request with a lock.
func checkRequestID(id string) error {
	if id == "" {
		return errors.New("give the --request-id of the acquisition")
	}
	return tower.ValidateRequestID(id)
}

// explainBusy explains EBUSY from a mount of lockfs, for a lock of this request.
func explainBusy(err error) error {
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	return fmt.Errorf("%w; the holder runs on another host: renew or release the lock there", err)
}

func checkEvery(every time.Duration, ttl int64) error {
	if most := tower.HeartbeatInterval(ttl); every <= 0 || every > most {
		return fmt.Errorf("--every %s: give at most %s, a third of the ttl; %s is a good choice",
			cli.Setting(every), cli.Setting(most), cli.Setting(tower.RecommendedInterval(ttl)))
	}
	return nil
}

// keepTower renews the lock until ctx ends, and reports failures (section 5.4). renewed is the time of the
// last request for the lock or its renewal. The loss of the lock is an event too: nothing else in the audit
// log explains why the request stopped.
func keepTower(
	ctx context.Context, warn io.Writer, dir tower.Dir, lock *tower.Lock, renewed time.Time, every time.Duration, audit *auditor,
	file *tower.LockFile,
) error {
	path, missed := dir.LockPath(lock.LockName), 0
	err := dir.KeepFile(ctx, lock, renewed, every, func(failures int, err error) {
		missed = failures
		fmt.Fprintf(warn, "lockfs: warning: heartbeat of %s failed, %d in a row: %v\n", lock.LockName, failures, explainBusy(err))
		if failures == tower.MaxHeartbeatFailures {
			audit.emit(lock.HeartbeatFailed(path, failures, err, dir.Now()))
		}
	}, file)
	if err != nil && missed < tower.MaxHeartbeatFailures {
		audit.emit(lock.HeartbeatFailed(path, missed+1, err, dir.Now()))
	}
	return err
}
