package protocol

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/beads"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// runFlags are the flags of `lockfs run`. Some are for certain formats only.
type runFlags struct {
	format, holder         string
	tag                    string
	intent, intentVersion  string
	staleTimeout, interval time.Duration
	ttl                    int64
	wait                   *time.Duration
	nonblock               bool
	grace                  time.Duration
	slots                  int     // 0: PATH is one lock
	oncePer                *period // nil: whenever the lock is free
	retry                  bool
	force                  bool // steal a stale lock of tower
	answer                 answer
	given                  []string // names of the flags on the command line
}

func runCommand() *cobra.Command {
	f := runFlags{answer: answer{outcome: outcomeAcquired}}
	var command []string
	cmd := &cobra.Command{
		Use:   "run PATH [flags] [--] COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Acquire a lock, run a command, renew the lock meanwhile, and release it when the
command ends. PATH is a lock file in any directory; on a mount of lockfs the lock
excludes all hosts.

  lockfs run /locks/nightly.lock ./backup.sh

Flags stand before COMMAND; what follows belongs to it. Like flock(1), lockfs
waits without limit: --wait limits the time, --nonblock does not wait. On Linux,
in local file systems and on mounts of lockfs, it does not poll.

The formats, their PATH, and the lock after a host has failed:

  semaphore  a file (File-Based Semaphore 1.0), renewed each third of
             --stale-timeout; stays until it is stale
  tower      DIR/NAME.lock (tower-fleet v1), renewed by heartbeats; stays for its
             --ttl, and until it is stolen
  swarm      DIR/TASK.lock (swarm task lock), extended each third of its --ttl;
             ends after its --ttl
  beads      a beads directory or its .exclusive-lock; stays until the host is back
  pid        a file with the pid of the lockfs-worker process; stays until the
             host is back

lockfs replaces a stale lock; a stale lock of tower only with --force-lock.

` + waitHelp + `

--slots N lets N commands hold the lock at a time, over all hosts. PATH is then a
directory, which is created if it is missing, with the locks slot-1.lock to
slot-N.lock. Waiters get a slot in order of arrival, on a mount of lockfs also
between hosts. A caller with --nonblock may pass them.

--once-per D runs the command once in each period, on the first host whose cron
starts it. The clock is that of PATH's file system, on a mount of lockfs the
cluster's. Periods count from 1970 in UTC: with 1h they begin on the hour.
day@03:00 begins at 03:00 UTC, day@03:00@Europe/Berlin at 03:00 there. The time at
which you start lockfs selects the period. PATH records the last run; PATH.lock is
the lock. A period is done when a run has begun; with --retry, when one has
succeeded. In a period that is done, lockfs exits with 77 at once, with a message
on terminals only (cron mails messages). After five seconds of waiting, lockfs
reports that the previous run still goes on.

` + lostHelp + `

` + runJSONHelp + `

` + cli.RunExitHelp(cli.ExitTurnOver),
		Example: `  lockfs run /locks/nightly.lock -- ./backup.sh
  lockfs run --format pid /run/lock/reindex.lock --nonblock -- ./reindex.sh
  lockfs run --slots 3 --format pid /locks/builds -- make
  lockfs run --once-per day@03:00 --retry /locks/nightly -- ./backup.sh
  lockfs run --format swarm /locks/swarm/locks/task-001.lock --holder worker-0 --ttl 10m --wait 1h -- ./task.sh`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Flags().Visit(func(flag *pflag.Flag) { f.given = append(f.given, flag.Name) })
			return cli.Failed(cli.FlagsFromEnvironment(cmd))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("PATH is empty: give the path of a lock file")
			}
			wait, err := f.waiting()
			if err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd, args[0], wait, command)
		},
	}
	f.add(cmd.Flags())
	cmd.SetFlagErrorFunc(cli.FlagError)
	pathAndCommand(cmd, &command)
	return cli.RunsCommand(cli.Exits(cmd))
}

func (f *runFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", formats.Semaphore.String(), "semaphore, tower, swarm, beads or pid")
	flags.Var(cli.OptionalDuration(&f.wait), "wait", "time limit of the wait for the lock (default: none)")
	flags.BoolVar(&f.nonblock, "nonblock", false, "do not wait for the lock")
	addGrace(flags, &f.grace)
	flags.StringVar(&f.tag, "tag", "", "semaphore: purpose of the lock, for readers (default: the command's name)")
	flags.DurationVar(&f.staleTimeout, "stale-timeout", semaphore.DefaultStaleTimeout, "semaphore: "+staleTimeoutHelp)
	flags.DurationVar(&f.interval, "retry-interval", semaphore.DefaultRetryInterval,
		"semaphore: interval of attempts on file systems without change events")
	flags.StringVar(&f.holder, "holder", "", "tower, swarm, beads: name of the holder (default: HOST-PID)")
	flags.StringVar(&f.intent, "intent", "", "tower: name of the intent (default: the command's name)")
	flags.StringVar(&f.intentVersion, "intent-version", "1", "tower: version of the intent's definition")
	flags.IntVar(&f.slots, "slots", 0, "number of commands that may hold the lock at a time")
	flags.Var(periodFlag{&f.oncePer}, "once-per", "run the command once in each period: a duration, day@HH:MM, or day@HH:MM@ZONE")
	flags.BoolVar(&f.retry, "retry", false, "once-per: try again in the same period after a failed run")
	flags.BoolVar(&f.force, "force-lock", false, "tower: steal the lock if it is stale; an active one is never stolen")
	f.answer.add(flags)
	f.ttl = tower.DefaultTTL
	flags.Var(ttlFlag{&f.ttl}, "ttl", "tower, swarm: time from a renewal to stale; a plain number is seconds")
}

// only lists the formats of a flag. Other flags are for all formats.
var only = map[string][]formats.Format{
	"tag": {formats.Semaphore}, "stale-timeout": {formats.Semaphore}, "retry-interval": {formats.Semaphore},
	"intent": {formats.Tower}, "intent-version": {formats.Tower}, "force-lock": {formats.Tower},
	"ttl":    {formats.Tower, formats.Swarm},
	"holder": {formats.Tower, formats.Swarm, formats.Beads},
}

// kind returns 0 for an unknown format.
func (f *runFlags) kind() formats.Format {
	format, _ := formats.ParseFormat(f.format)
	return format
}

// check rejects flags without effect. Variables apply to all commands, so flags set by variables are exempt.
func (f *runFlags) check() error {
	for _, flag := range f.given {
		if has := only[flag]; has != nil && !slices.Contains(has, f.kind()) {
			return fmt.Errorf("--%s is for the format %v, not for %s", flag, has, f.format)
		}
	}
	return f.checkTurns()
}

// checkTurns rejects wrong uses of --slots, --once-per and --retry.
func (f *runFlags) checkTurns() error {
	given := func(flag string) bool { return slices.Contains(f.given, flag) }
	format := f.kind()
	switch {
	case given("slots") && (f.slots < 1 || f.slots > mostSlots):
		return fmt.Errorf("--slots %d: give 1 to %d", f.slots, mostSlots)
	case f.slots != 0 && f.oncePer != nil:
		return errors.New("give --slots or --once-per, and not both")
	case f.slots != 0 && (format == formats.Beads || format == formats.Tower):
		return fmt.Errorf("--slots is for the formats semaphore, swarm and pid, not for %s", format)
	case f.oncePer != nil && format == formats.Beads:
		return fmt.Errorf("--once-per is not for the format %s", format)
	case f.retry && f.oncePer == nil:
		return errors.New("--retry is for --once-per")
	}
	return nil
}

func (f *runFlags) waiting() (time.Duration, error) {
	switch {
	case f.nonblock && f.wait != nil && *f.wait != 0:
		return 0, errors.New("give --wait or --nonblock, and not both")
	case f.nonblock:
		return 0, nil
	case f.wait != nil:
		return *f.wait, nil
	}
	return forEver, nil
}

func (f *runFlags) run(cmd *cobra.Command, path string, wait time.Duration, command []string) error {
	lock, err := f.lockOf(cmd, path, wait, command)
	if err != nil {
		return err
	}
	return runUnder(cmd, &f.answer, lock, command, f.grace)
}

// lockOf returns the lock for the command: a lock, slots, or a turn.
func (f *runFlags) lockOf(cmd *cobra.Command, path string, wait time.Duration, command []string) (runLock, error) {
	named, err := f.named(command[0])
	if err != nil {
		return nil, err
	}
	switch {
	case f.slots != 0:
		slots, err := newSlots(path, f.slots, wait, func(path string) (runLock, error) { return f.open(cmd, path, 0, named) })
		if err != nil {
			return nil, err
		}
		f.answer.look = slots.look(f.lookAt)
		slots.notice = newNotice(cmd, f.answer.asJSON, removable(f.answer.look))
		return slots, nil
	case f.oncePer != nil:
		f.answer.look = f.lookupOf(turnLock(path))
		lock, err := f.open(cmd, turnLock(path), wait, named)
		if err != nil {
			return nil, err
		}
		return newTurn(cmd.ErrOrStderr(), path, f.oncePer, f.retry, command, lock)
	}
	f.answer.look = f.lookupOf(path)
	return f.open(cmd, path, wait, named)
}

// lookAt reads the state of the lock at a path.
func (f *runFlags) lookAt(path string) (lockState, any) {
	format := f.kind()
	switch dir, name, err := inDirectory(path); {
	case format == formats.Tower && err == nil:
		return lookAtTower(tower.Dir{Path: dir, Now: time.Now}, name)()
	case format == formats.Swarm && err == nil:
		return lookAtSwarm(swarm.Dir(dir), name)()
	case format == formats.Beads:
		return lookAtBeads(beadsDirOf(path))()
	case format == formats.Semaphore:
		return lookAtSemaphore(semaphore.File{Path: path, StaleTimeout: f.staleTimeout})()
	}
	return lookAt(path, format, 0), nil
}

// lookupOf returns a lookup of one path.
func (f *runFlags) lookupOf(path string) lookup {
	return func() (lockState, any) { return f.lookAt(path) }
}

// open returns the lock at a path by the rules of its format.
func (f *runFlags) open(cmd *cobra.Command, path string, wait time.Duration, named names) (runLock, error) {
	switch f.kind() {
	case formats.Semaphore:
		flags := semaphoreFlags{file: semaphore.File{Tag: named.tag, StaleTimeout: f.staleTimeout, RetryInterval: f.interval}}
		file, err := flags.open(path)
		if err != nil {
			return nil, err
		}
		return f.withNotice(cmd, path)(semaphoreRunLock(cmd, file, wait))
	case formats.Tower:
		return f.tower(cmd, path, wait, named)
	case formats.Swarm:
		dir, task, err := inDirectory(path)
		if err != nil {
			return nil, err
		}
		return f.withNotice(cmd, path)(swarmTaskLock(swarm.Dir(dir), task, named.holder, time.Duration(f.ttl)*time.Second, wait), nil)
	case formats.Beads:
		dir, err := beadsDir(beadsDirOf(path))
		if err != nil {
			return nil, err
		}
		lock, err := newBeadsLock(named.holder, "")
		if err != nil {
			return nil, err
		}
		return f.withNotice(cmd, dir)(beadsFileLock(dir, lock, wait, checkInterval), nil)
	case formats.PID:
		return f.withNotice(cmd, path)(pidLock(path, wait), nil)
	}
	return nil, fmt.Errorf("--format %s: it is semaphore, tower, swarm, beads or pid", cli.Word(f.format))
}

// beadsDirOf returns the directory of a database, given this directory or its lock.
func beadsDirOf(path string) string {
	if filepath.Base(path) == beads.FileName {
		return filepath.Dir(path)
	}
	return path
}

// withNotice adds a notice to a lock.
func (f *runFlags) withNotice(cmd *cobra.Command, path string) func(*fileLock, error) (runLock, error) {
	return func(lock *fileLock, err error) (runLock, error) {
		if err != nil {
			return nil, err
		}
		lock.notice = f.newNotice(cmd, removable(f.lookupOf(path)))
		return lock, nil
	}
}

func (f *runFlags) newNotice(cmd *cobra.Command, look lookup) *notice {
	n := newNotice(cmd, f.answer.asJSON, look)
	if f.oncePer != nil {
		n.first = turnNoticeAfter
	}
	return n
}

// names describe the command in a lock.
type names struct{ tag, holder, intent string }

func (f *runFlags) named(command string) (names, error) {
	n := names{f.tag, f.holder, f.intent}
	base := filepath.Base(command)
	if n.tag == "" {
		n.tag = base
	}
	if n.intent == "" {
		n.intent = base
	}
	if n.holder == "" {
		host, err := os.Hostname()
		if err != nil {
			return n, err
		}
		n.holder = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return n, nil
}

func (f *runFlags) tower(cmd *cobra.Command, path string, wait time.Duration, named names) (runLock, error) {
	dir, name, err := inDirectory(path)
	if err != nil {
		return nil, err
	}
	if err := tower.ValidateName(name); err != nil {
		return nil, fmt.Errorf("PATH %s: %w", cli.Word(path), err)
	}
	lock := &towerRun{
		towerRequest: towerRequest{
			intent: named.intent, intentVersion: f.intentVersion, actor: named.holder, ttl: f.ttl, wait: wait,
			force: f.force, notice: f.newNotice(cmd, forcible(f.lookupOf(path), cmd.CommandPath())),
		},
		answer: &f.answer, locks: tower.Dir{Path: dir, Now: time.Now}, name: name, stderr: cmd.ErrOrStderr(),
	}
	return lock, lock.prepare()
}

// inDirectory splits DIR/NAME.lock.
func inDirectory(path string) (dir, name string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	dir, file := filepath.Split(path)
	name, is := strings.CutSuffix(file, ".lock")
	if !is {
		return "", "", fmt.Errorf("PATH %s: locks of this format are files NAME.lock; give such a path", cli.Word(path))
	}
	return filepath.Clean(dir), name, nil
}
