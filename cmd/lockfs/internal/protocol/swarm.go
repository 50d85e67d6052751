package protocol

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/swarm"
)

// SwarmScript is the name of the specification's script. Called through a link of this name, lockfs replaces
// the script.
const SwarmScript = "swarm_lock.sh"

// swarmFields are the fields of --json for swarm only.
type swarmFields struct {
	TaskID string `json:"task_id"`
}

// lookAtSwarm returns a lookup of a task's lock.
func lookAtSwarm(dir swarm.Dir, task string) lookup {
	return func() (lockState, any) {
		state := lookAt(swarmFile(dir, task), formats.Swarm, 0)
		switch entry, err := dir.Check(task); {
		case errors.Is(err, fs.ErrNotExist): // also if the directory is missing
			state.State, state.Reason = string(formats.Free), ""
		case err == nil && entry.Err != nil && state.taken(): // the file may name another task
			state.State, state.Reason = string(formats.Invalid), entry.Err.Error()
		}
		return state, swarmFields{task}
	}
}

// swarmExits makes a command end with the specification's only code for errors ("Exit codes").
func swarmExits(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var exit *cli.ExitStatus
		if errors.As(err, &exit) {
			err = cli.Exit(cli.ExitSwarm, exit.Err)
		}
		return err
	}
	return cmd
}

const swarmExitHelp = `The exit code is 0, or, by the specification, 1 for any error; with --json, outcome names the error.`

const swarmDirHelp = `The locks are files DIR/TASK.lock, where DIR is $SWARM_STATE_DIR/locks, or /tmp/ai_swarm/locks without that variable.`

func swarmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "swarm",
		Short: "Acquire, release, check or list swarm task locks",
		Long: `Acquire, release, check or list swarm task locks. Through a link named
swarm_lock.sh, lockfs replaces that script.

` + swarmDirHelp + `
Use any directory. On a mount of lockfs, the workers on all hosts share the tasks:

  export SWARM_STATE_DIR=/locks/swarm

If several workers want a task at once, exactly one acquires it, also if its lock
has expired. On other file systems this holds for one host and for this command
only. Only a mount of lockfs also

  - excludes the workers of other hosts
  - keeps programs from removing a new lock after they looked at an expired one
  - compares expiry with one clock
  - gives each holder a larger fencing token (user.lockfs.token)

` + swarmExitHelp,
		Example: `  lockfs swarm acquire task-001 worker-0 3600 && do-task-001; lockfs swarm release task-001 worker-0
  ln -s /usr/local/bin/lockfs scripts/swarm_lock.sh`,
	}
	return cli.Parent(cmd, swarmExits(requireMounted(swarmAcquireCommand())), swarmExits(swarmReleaseCommand()), swarmExits(swarmCheckCommand()),
		swarmListCommand())
}

// SwarmScriptCommand returns `lockfs swarm` under the name of the script.
func SwarmScriptCommand() *cobra.Command {
	cmd := swarmCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	for _, named := range append(cmd.Commands(), cmd) {
		named.Example = strings.ReplaceAll(named.Example, "lockfs "+cmd.Name(), SwarmScript)
	}
	cmd.Use = SwarmScript
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(cli.WrongFlag)
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return cli.FlagsFromEnvironment(cmd) }
	return cli.OnMount(cmd)
}

func swarmAcquireCommand() *cobra.Command {
	answer := answer{outcome: outcomeAcquired}
	cmd := &cobra.Command{
		Use:   "acquire TASK WORKER [TTL_SECONDS]",
		Short: "Acquire the lock of a task if it is free or expired",
		Long: `Acquire the lock of a task for a worker. The command does not wait: if the task
is locked, even by the same worker, it fails. It replaces an expired lock.

With TTL_SECONDS the lock expires that many seconds after its acquired_at. Since
acquired_at has whole seconds, the lock may last up to a second longer. Without
TTL_SECONDS it never expires. If the task is locked, the command prints "Lock
already exists" on standard output. TASK is up to 250 bytes of printable text
without slashes and without a leading dot.

` + jsonHelp + `

` + swarmExitHelp + `

` + swarmDirHelp,
		Example: "  lockfs swarm acquire task-001 worker-0 3600",
		Args:    cli.Exactly(2, 3),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			ttl, err := parseTTL(args[2:])
			if err != nil {
				return err
			}
			dir := swarm.DefaultDir()
			if swarm.ValidateTaskID(args[0]) == nil {
				answer.look = lookAtSwarm(dir, args[0])
			}
			taken, err := dir.Acquire(cmd.Context(), args[0], args[1], ttl)
			var held *swarm.HeldError
			if errors.As(err, &held) {
				_ = answer.say(cmd, "Lock already exists\n") // as the specification's script does
			}
			if err != nil {
				return explainNotAcquired(dir, args[0], err)
			}
			if err := cli.Keep(cmd.Context()); err != nil {
				return errors.Join(err, giveBackSwarm(cmd.Context(), dir, taken))
			}
			entry := swarm.Entry{TaskID: taken.TaskID, Lock: taken, Status: swarm.Active}
			if now, err := dir.Check(taken.TaskID); err == nil && now.Lock != nil && *now.Lock == *taken {
				entry.Token = now.Token // else it is that of the next lock
			}
			answer.token = tokenNumber(entry.Token)
			return answer.say(cmd, "Lock acquired\n%s", entry.Details())
		}),
	}
	answer.add(cmd.Flags())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && strings.IndexAny(unknown.GetSpecifiedShortnames(), "0123456789.") == 0 {
			_, err = parseTTL([]string{"-" + unknown.GetSpecifiedShortnames()}) // it looks like a flag
			return err
		}
		return cli.WrongFlag(cmd, err)
	})
	return cmd
}

// parseTTL rejects 0, which could mean "at once" or "never".
func parseTTL(args []string) (time.Duration, error) {
	if len(args) == 0 {
		return 0, nil
	}
	const most = math.MaxInt64 / int64(time.Second)
	seconds, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || seconds < 1 || seconds > most {
		return 0, fmt.Errorf("ttl_seconds: %s is not a number from 1 to %d; leave it out for a lock that never expires",
			cli.Word(args[0]), most)
	}
	return time.Duration(seconds) * time.Second, nil
}

func explainNotAcquired(dir swarm.Dir, task string, err error) error {
	var held *swarm.HeldError
	switch {
	case errors.As(err, &held) && held.Entry.Lock == nil:
		return cli.Exit(cli.ExitBlocked, fmt.Errorf("not acquired: %w; %s", err, lookHint(dir, task)))
	case errors.As(err, &held) && held.Entry.Lock.ExpiresAt.IsZero():
		return cli.Exit(cli.ExitBlocked, fmt.Errorf("not acquired: %w; wait until its worker releases it", err))
	case errors.As(err, &held):
		return cli.Exit(cli.ExitBlocked, fmt.Errorf("not acquired: %w; wait until then, or until its worker releases it", err))
	case errors.Is(err, swarm.ErrChanged):
		return cli.Exit(cli.ExitBlocked, fmt.Errorf("not acquired: %w; try again", err))
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist):
		return fmt.Errorf("not acquired: %w; the directory %s cannot be made: give another with %s",
			err, cli.Word(string(dir)), swarm.StateDirVariable)
	}
	return fmt.Errorf("not acquired: %w", err)
}

func swarmReleaseCommand() *cobra.Command {
	answer := answer{outcome: outcomeReleased}
	cmd := &cobra.Command{
		Use:   "release TASK WORKER",
		Short: "Release a worker's lock of a task",
		Long: `Release the lock of a task. If the task is not locked, or is locked by another
worker, the command fails and changes nothing. An expired lock belongs to its
worker until another one replaces it.

` + jsonHelp + `

` + swarmExitHelp + `

` + swarmDirHelp,
		Example: "  lockfs swarm release task-001 worker-0",
		Args:    cli.Exactly(2, 2),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir := swarm.DefaultDir()
			if swarm.ValidateTaskID(args[0]) == nil {
				answer.look = lookAtSwarm(dir, args[0])
			}
			if err := dir.Release(cmd.Context(), args[0], args[1]); err != nil {
				return explainNotReleased(dir, args[0], args[1], err)
			}
			return answer.say(cmd, "Lock released: %s (worker: %s)\n", cli.Text(args[0]), cli.Text(args[1]))
		}),
	}
	answer.add(cmd.Flags())
	return cmd
}

// giveBackSwarm releases a lock just acquired. It returns nil if the lock is gone, or another worker's.
func giveBackSwarm(ctx context.Context, dir swarm.Dir, taken *swarm.Lock) error {
	return notReleased(persistently(ctx, func(ctx context.Context) error {
		err := dir.Release(ctx, taken.TaskID, taken.Worker)
		var owner *swarm.OwnerError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &owner) {
			return nil
		}
		return err
	}))
}

func explainNotReleased(dir swarm.Dir, task, worker string, err error) error {
	var owner *swarm.OwnerError
	switch {
	case errors.As(err, &owner):
		return cli.Exit(cli.ExitNotOwner, fmt.Errorf("not released: %w; only its worker releases it", err))
	case errors.Is(err, fs.ErrNotExist):
		return cli.Exit(cli.ExitNoLock, fmt.Errorf("not released: there is no lock for %s in %s; "+
			"if %s had one, it expired and was replaced, or was removed"+removerHint, cli.Word(task), cli.Word(string(dir)), cli.Word(worker)))
	case errors.Is(err, syscall.EBUSY):
		return cli.Exit(cli.ExitNotOwner, fmt.Errorf("not released: %w; by a rule only its own host may release it, see `lockfs locks %s`",
			err, cli.ShellWord(swarmFile(dir, task))))
	case errors.Is(err, swarm.ErrUnreadable):
		return fmt.Errorf("not released: %w; %s", err, lookHint(dir, task))
	}
	return fmt.Errorf("not released: %w", err)
}

func swarmCheckCommand() *cobra.Command {
	var answer answer
	cmd := &cobra.Command{
		Use:   "check TASK",
		Short: "Show the holder of a task's lock and whether it has expired",
		Long: `Show whether a task is locked, and whether the lock is Active or Expired.

The exit code is 0 in both cases and for a free task, and 1 if the lock file cannot
be parsed.

` + jsonHelp + `

` + swarmDirHelp,
		Example: `  lockfs swarm check task-001
  lockfs swarm check task-001 --json | jq -r .holder`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir := swarm.DefaultDir()
			entry, err := dir.Check(args[0])
			if swarm.ValidateTaskID(args[0]) == nil {
				answer.look = lookAtSwarm(dir, args[0])
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return answer.say(cmd, "%s\n", swarm.NoLock(args[0]))
			case err != nil:
				return err
			}
			if err := answer.say(cmd, "%s", entry.Details()); err != nil {
				return err
			}
			if entry.Err != nil {
				return fmt.Errorf("the lock file of %s cannot be understood; %s", cli.Word(args[0]), lookHint(dir, args[0]))
			}
			return nil
		}),
	}
	answer.add(cmd.Flags())
	return cmd
}

func swarmListCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List locks and whether they have expired",
		Long: `List all locks, one a line, as Active or Expired; a file that cannot be parsed
is Unreadable. The exit code is 0, also for an empty list, and 1 for any error.

` + swarmDirHelp,
		Example: `  lockfs swarm list
  lockfs swarm list --json | jq -r '.[] | select(.state == "stale") | .task_id'`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := swarm.DefaultDir()
			entries, err := dir.List()
			if err != nil {
				return err
			}
			if asJSON {
				locks := make([]any, len(entries))
				for i, entry := range entries {
					if locks[i], err = merged(lookAtSwarm(dir, entry.TaskID)()); err != nil {
						return err
					}
				}
				return cli.PrintJSON(cmd.OutOrStdout(), locks)
			}
			for _, entry := range entries {
				fmt.Fprintln(cmd.OutOrStdout(), entry.Line())
			}
			if len(entries) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No locks")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// lookHint returns advice about a file that is probably no lock.
func lookHint(dir swarm.Dir, task string) string {
	return fmt.Sprintf("look at %s, and remove it if it is not in use", cli.Word(swarmFile(dir, task)))
}

func swarmFile(dir swarm.Dir, task string) string {
	return filepath.Join(string(dir), swarm.FileName(task))
}
